"""Opening, sharing, closing and forking a store file."""

import os
import threading
import time

import pytest

from simindex.errors import Closed, Locked, OpenError, ReadOnly, WriteError
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


def in_child(body):
    """Run body() in a forked child; return its exit code (0 = it returned True)."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if body() is True else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_what_is_written_is_read_after_reopening(path):
    with Environment.open(path) as env:
        put(env)
    with Environment.open(path, mode="r") as env:
        assert get(env) == b"v"
        with pytest.raises(ReadOnly):
            env.begin_write()


def test_open_refuses_a_missing_file_for_reading_and_an_existing_one_for_x(path):
    with pytest.raises(OpenError, match="no such file"):
        Environment.open(path, mode="r")
    assert not path.exists()
    Environment.open(path, mode="x").close()
    with pytest.raises(OpenError, match="exists already"):
        Environment.open(path, mode="x")


def test_an_exception_leaves_nothing(path):
    with Environment.open(path) as env:

        def fail():
            with env.begin_write() as w:
                w.txn.put(b"k", b"v", db=w.db("records"))
                raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            fail()
        assert get(env) is None
        put(env)
        assert get(env) == b"v"


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
    assert get(second) == b"v"
    put(second, b"k2")
    second.close()
    with pytest.raises(Closed):
        second.begin_read()
    with Environment.open(path) as third:
        assert get(third, b"k2") == b"v"


def test_nested_snapshots_and_a_writer_inside_a_snapshot(path):
    with Environment.open(path) as env:
        with env.begin_read() as outer:
            put(env)
            with env.begin_read() as inner:
                assert inner.txn.get(b"k", db=inner.db("records")) is not None
                assert outer.txn.get(b"k", db=outer.db("records")) is None
                assert inner.id > outer.id


def test_a_write_inside_a_write_of_the_same_thread_is_an_error_at_once(path):
    with Environment.open(path) as env, env.begin_write():
        start = time.monotonic()
        with pytest.raises(WriteError, match="already inside a write"):
            env.begin_write(timeout=5)
        assert time.monotonic() - start < 1


def test_a_second_writing_thread_waits_then_is_told_who(path):
    with Environment.open(path) as env:
        got = []

        def other():
            try:
                env.begin_write(timeout=0.05)
            except Locked as error:
                got.append(str(error))

        with env.begin_write():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert "MainThread" in got[0]


def test_a_finished_transaction_raises_closed(path):
    with Environment.open(path) as env:
        with env.begin_read() as r:
            pass
        with pytest.raises(Closed, match="ended"):
            _ = r.txn


def test_close_waits_for_another_threads_snapshot(path):
    env = Environment.open(path)
    put(env)
    inside, go = threading.Event(), threading.Event()
    seen = []

    def reader():
        with env.begin_read() as r:
            inside.set()
            go.wait(10)
            time.sleep(0.05)
            seen.append(bytes(r.txn.get(b"k", db=r.db("records"))))

    thread = threading.Thread(target=reader)
    thread.start()
    inside.wait(10)
    go.set()
    env.close()
    assert seen == [b"v"]
    thread.join()


def test_a_forked_child_reads_and_writes_through_the_inherited_object(path):
    with Environment.open(path) as env:
        put(env)
        with env.begin_read() as mine:
            assert in_child(lambda: get(env) == b"v") == 0
            assert in_child(lambda: put(env, b"c") is None and get(env, b"c") == b"v") == 0

            def stale():
                try:
                    _ = mine.txn
                except Closed as error:
                    return "parent" in str(error)

            assert in_child(stale) == 0
            assert bytes(mine.txn.get(b"k", db=mine.db("records"))) == b"v"
            assert str(os.getpid()) in env._file.env.readers()
        assert get(env, b"c") == b"v"
        put(env, b"d")


def test_the_parents_write_transaction_is_dead_in_the_child(path):
    with Environment.open(path) as env:
        with env.begin_write() as w:
            w.txn.put(b"k", b"v", db=w.db("records"))

            def child():
                try:
                    w.commit()
                except Closed:
                    pass
                else:
                    return False
                try:
                    env.begin_write(timeout=0.05)
                except Locked as error:
                    return str(os.getppid()) in str(error)

            assert in_child(child) == 0
        assert get(env) == b"v"
