"""Opening, sharing and closing a store file; snapshots."""

import gc
import os
import threading
import time

import pytest
from store.processes import run

from simindex.errors import Closed, Locked, OpenError, ReadOnly, SchemaError
from simindex.store import serial
from simindex.store.env import Environment


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.simdb"


def put(env, key=b"k", value=b"v"):
    with env.begin_write() as w:
        w.txn.put(key, value, db=w.db("records"))


def get(env, key=b"k"):
    with env.begin_read() as r:
        value = r.txn.get(key, db=r.db("records"))
        return None if value is None else bytes(value)


def test_what_is_written_is_read_after_reopening(path):
    with Environment.open(path) as env:
        put(env)
        assert env.identity.format == 1
    with Environment.open(path, mode="r") as env:
        assert get(env) == b"v"
        with pytest.raises(ReadOnly):
            env.begin_write()
    assert sorted(p.name for p in path.parent.iterdir()) == ["a.simdb", "a.simdb-lock"]


def test_open_refuses_a_missing_file_for_reading_and_an_existing_one_for_x(path):
    with pytest.raises(OpenError, match="no such file"):
        Environment.open(path, mode="r")
    with pytest.raises(OpenError, match="no folder"):
        Environment.open(path / "b" / "c")
    assert not path.exists()
    Environment.open(path, mode="x").close()
    with pytest.raises(OpenError, match="exists already"):
        Environment.open(path, mode="x")


@pytest.mark.parametrize(
    "wrong",
    [{"mode": "a"}, {"durability": "none"}, {"max_bytes": 1}, {"timeout": -1}, {"timeout": float("nan")}],
)
def test_open_refuses_bad_arguments_and_makes_no_file(path, wrong):
    with pytest.raises(ValueError, match=str(next(iter(wrong)))):
        Environment.open(path, **wrong)
    assert not path.exists()


def test_a_memory_store_is_private_and_removed_at_close():
    with Environment.open(":memory:") as one, Environment.open(":memory:") as two:
        put(one)
        assert get(one) == b"v"
        assert get(two) is None
        folder = one.path.parent
        assert folder.exists()
    assert not folder.exists()


def test_an_exception_leaves_nothing(path):
    def fail(env):
        with env.begin_write() as w:
            w.txn.put(b"k", b"v", db=w.db("records"))
            raise RuntimeError("stop")

    with Environment.open(path) as env:
        with pytest.raises(RuntimeError, match="stop"):
            fail(env)
        assert get(env) is None
        put(env)
        assert get(env) == b"v"


# One file opened twice --------------------------------------------------------------------------------------


@pytest.mark.parametrize("alias", ["same", "symlink", "hard link", "relative"])
def test_one_file_opened_twice_works_until_the_last_close(path, alias, tmp_path, monkeypatch):
    first = Environment.open(path)
    put(first)
    other = path
    if alias == "symlink":
        other = tmp_path / "s"
        other.symlink_to(path)
    elif alias == "hard link":
        other = tmp_path / "h"
        os.link(path, other)
    elif alias == "relative":
        monkeypatch.chdir(tmp_path)
        other = "a.simdb"
    second = Environment.open(other)
    first.close()
    first.close()
    assert get(second) == b"v"
    put(second, b"k2")
    second.close()
    for env in (first, second):
        with pytest.raises(Closed):
            env.begin_read()
        with pytest.raises(Closed):
            env.begin_write()
    with Environment.open(path) as third:
        assert get(third, b"k2") == b"v"


def test_threads_that_open_and_close_at_once_do_not_disturb_each_other(path):
    Environment.open(path).close()
    wrong = []

    def work(number):
        try:
            for i in range(30):
                with Environment.open(path, durability="relaxed", timeout=30) as env:
                    put(env, b"%d" % number, b"%d" % i)
                    assert get(env, b"%d" % number) == b"%d" % i
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    with Environment.open(path) as env:
        assert [get(env, b"%d" % n) for n in range(4)] == [b"29"] * 4


def test_openers_with_contradicting_settings_are_refused_with_both_values(path):
    with Environment.open(path, durability="relaxed"):
        with pytest.raises(SchemaError, match=r"'relaxed'.*'full'"):
            Environment.open(path)
        with pytest.raises(SchemaError, match=r"max_bytes=None.*max_bytes=10000000"):
            Environment.open(path, durability="relaxed", max_bytes=10_000_000)
        Environment.open(path, mode="r").close()


def test_a_reader_and_a_writer_share_the_file_whichever_came_first(path):
    Environment.open(path).close()
    with Environment.open(path, mode="r") as reader:
        assert get(reader) is None
        with Environment.open(path, mode="w", durability="relaxed") as writer:
            before = reader.epoch
            put(writer)
            assert reader.epoch != before  # reopened: addresses are void
            assert get(reader) == b"v"
            with pytest.raises(ReadOnly):
                reader.begin_write()
        assert get(reader) == b"v"


def test_a_new_store_beside_the_lock_file_of_a_moved_open_one_is_refused(path):
    with Environment.open(path):
        path.rename(path.with_name("moved"))
        with pytest.raises(OpenError, match="another name"):
            Environment.open(path)


# Snapshots --------------------------------------------------------------------------------------------------


def test_nested_snapshots_and_a_writer_inside_a_snapshot(path):
    with Environment.open(path) as env:
        with env.begin_read() as outer:
            put(env)
            with env.begin_read() as inner:
                assert inner.txn.get(b"k", db=inner.db("records")) is not None
                assert outer.txn.get(b"k", db=outer.db("records")) is None
                assert inner.id == outer.id + 1
                assert inner.epoch == outer.epoch


def test_a_finished_transaction_raises_closed(path):
    with Environment.open(path) as env:
        with env.begin_read() as r:
            pass
        r.end()
        with pytest.raises(Closed, match="ended"):
            _ = r.txn
        with env.begin_write() as w:
            w.commit()
        for call in (w.commit, lambda: w.reserve(1), lambda: w.txn):
            with pytest.raises(Closed, match="ended"):
                call()
        w.abort()


def test_a_snapshot_may_end_in_another_thread(path):
    with Environment.open(path) as env:
        r = env.begin_read()
        thread = threading.Thread(target=r.end)
        thread.start()
        thread.join()
        assert not r.is_open
    assert get_closed(env)


def get_closed(env):
    with pytest.raises(Closed):
        env.begin_read()
    return True


def test_a_forgotten_snapshot_is_let_go(path):
    with Environment.open(path) as env:
        cycle = [env.begin_read()]
        cycle.append(cycle)
        assert len(env.info().readers) == 1
        del cycle
        gc.collect()
        assert env.info().readers == ()


def test_garbage_collected_while_transactions_begin_does_not_hang(path):
    # A dropped snapshot may be collected at any allocation, also inside begin_read of the same thread.
    with Environment.open(path) as env:
        old = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for _ in range(300):
                cycle = [env.begin_read()]
                cycle.append(cycle)
                env.begin_read().end()
        finally:
            gc.set_threshold(*old)
        del cycle
        gc.collect()
        assert env.info().readers == ()


# Closing ----------------------------------------------------------------------------------------------------


def test_close_waits_for_another_threads_snapshot(path):
    env = Environment.open(path)
    put(env)
    inside, go = threading.Event(), threading.Event()
    seen = []

    def reader():
        with env.begin_read() as r:
            inside.set()
            go.wait(10)
            time.sleep(0.1)
            seen.append(bytes(r.txn.get(b"k", db=r.db("records"))))

    thread = threading.Thread(target=reader)
    thread.start()
    inside.wait(10)
    go.set()
    env.close()
    assert seen == [b"v"]
    thread.join()


def test_close_gives_up_after_the_timeout_and_the_store_stays_open(path):
    env = Environment.open(path, timeout=0.1)
    put(env)
    inside, go = threading.Event(), threading.Event()

    def reader():
        with env.begin_read():
            inside.set()
            go.wait(10)

    thread = threading.Thread(target=reader)
    thread.start()
    inside.wait(10)
    with pytest.raises(Locked, match="1 transactions of other threads"):
        env.close()
    assert get(env) == b"v"
    go.set()
    thread.join()
    env.close()
    assert get_closed(env)


def test_close_ends_this_threads_own_snapshots(path):
    env = Environment.open(path)
    r = env.begin_read()
    env.close()
    with pytest.raises(Closed):
        _ = r.txn
    with Environment.open(path) as env:
        put(env)


def test_readers_and_writers_in_threads_while_openers_come_and_go(path):
    wrong, stop = [], threading.Event()

    def guard(body):
        def work():
            try:
                while not stop.is_set():
                    body()
            except BaseException as error:
                wrong.append(error)

        return threading.Thread(target=work)

    def reader():
        with base.begin_read() as r:
            a = r.txn.get(b"a", db=r.db("records"))
            time.sleep(0)
            b = r.txn.get(b"b", db=r.db("records"))
            assert (a is None and b is None) or bytes(a) == bytes(b)

    count = iter(range(10**9))

    def writer():
        value = b"%d" % next(count)
        with base.begin_write(30) as w:
            w.txn.put(b"a", value, db=w.db("records"))
            w.txn.put(b"b", value, db=w.db("records"))

    def opener():
        with Environment.open(path, durability="relaxed") as env, env.begin_read():
            pass

    with Environment.open(path, durability="relaxed") as base:
        threads = [guard(body) for body in (reader, reader, writer, opener)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


# Numbers, copies --------------------------------------------------------------------------------------------


def test_info_tells_sizes_and_who_lags(path):
    with Environment.open(path) as env:
        with env.begin_read():
            for i in range(3):
                put(env, b"%d" % i, bytes(100_000))
            info = env.info()
            assert info.file_bytes == path.stat().st_size
            assert info.used_bytes >= 300_000
            assert info.map_bytes == 1 << 40
            assert (info.oldest.pid, info.oldest.lag) == (os.getpid(), 3)
        with env.begin_write() as w:
            for i in range(3):
                w.txn.delete(b"%d" % i, db=w.db("records"))
        info = env.info()
        assert info.readers == ()
        assert info.free_bytes >= 300_000


@pytest.mark.parametrize("compact", [True, False])
def test_copy_is_a_store_of_its_own_and_never_overwrites(path, tmp_path, compact):
    target = tmp_path / "b.simdb"
    with Environment.open(path) as env:
        put(env)
        env.copy(target, compact=compact)
        put(env, b"later")
        with pytest.raises(OpenError, match="exists already"):
            env.copy(target)
        with Environment.open(target) as other:
            assert get(other) == b"v"
            assert get(other, b"later") is None
            put(other, b"theirs")
        assert get(env, b"theirs") is None
    assert sorted(p.name for p in tmp_path.glob("*.simdb")) == ["a.simdb", "b.simdb"]


def test_bulk_new_makes_only_new_files_and_sync_puts_them_on_the_disk(path):
    with Environment.open(path, bulk_new=True) as env:
        put(env)
        env.sync()
    with pytest.raises(OpenError, match="exists already"):
        Environment.open(path, bulk_new=True)
    with Environment.open(path) as env:
        assert get(env) == b"v"


def test_transactions_take_turns_where_the_interpreter_has_no_lock(path, monkeypatch):
    monkeypatch.setattr(serial, "required", True)
    with pytest.warns(RuntimeWarning, match="one at a time"):
        env = Environment.open(path)
    most, inside = [], []

    def reader():
        for _ in range(50):
            with env.begin_read(), env.begin_read():
                inside.append(1)
                time.sleep(0)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=reader) for _ in range(3)]
    for thread in threads:
        thread.start()
    put(env)
    for thread in threads:
        thread.join()
    env.close()
    assert max(most) == 1


def test_the_file_is_an_lmdb_environment_of_engine_0_9(path):
    Environment.open(path).close()
    text = """
        import lmdb, sys
        env = lmdb.open(sys.argv[1], subdir=False, readonly=True, max_dbs=9)
        print(env.lib_version()[:2], sorted(map(bytes.decode, env.dbs())))
    """
    names = ["live", "meta", "originals", "postings", "records", "signatures"]
    assert run(text, path) == f"(0, 9) {names}"


def test_the_environment_variable_of_the_binding_does_not_choose_the_engine(path):
    text = """
        import sys
        from simindex.store.env import Environment
        with Environment.open(sys.argv[1]) as env:
            print(env.identity.engine)
    """
    assert run(text, path, env=dict(os.environ, LMDB_DEFAULT_LIB_VERSION="1")) == "lmdb-0.9"
    assert run(text, path) == "lmdb-0.9"
