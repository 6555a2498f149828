"""Forked and spawned processes (case D4): right answers on both sides, and nothing of the parent's is
touched.
"""

import multiprocessing
import os
import sys
import threading
import time

import pytest
from store.processes import in_child

from simindex.errors import Closed, Locked, OpenError
from simindex.store.env import Environment


@pytest.fixture
def env(tmp_path):
    with Environment.open(tmp_path / "a.simdb", timeout=30) as env:
        put(env, b"k", b"v")
        yield env


def put(env, key, value):
    with env.begin_write() as w:
        w.txn.put(key, value, db=w.db("records"))


def get(env, key):
    with env.begin_read() as r:
        value = r.txn.get(key, db=r.db("records"))
        return None if value is None else bytes(value)


def own_readers(env):
    return [reader for reader in env.info().readers if reader.pid == os.getpid()]


def test_a_child_reads_and_writes_through_the_inherited_object(env):
    with env.begin_read() as mine:
        before = env.epoch
        assert in_child(lambda: get(env, b"k") == b"v" and env.epoch != before) == 0
        assert in_child(lambda: put(env, b"c", b"w") is None and get(env, b"c") == b"w") == 0
        assert bytes(mine.txn.get(b"k", db=mine.db("records"))) == b"v"
        assert len(own_readers(env)) == 1
    assert get(env, b"c") == b"w"
    put(env, b"d", b"x")
    assert own_readers(env) == []


@pytest.mark.parametrize("leave", [os._exit, sys.exit])
@pytest.mark.parametrize("close", [False, True])
def test_a_child_that_only_inherits_leaves_the_parents_snapshot_alone(env, leave, close):
    def body():
        if close:
            env.close()
        return True

    def really_leave(code):
        # sys.exit would unwind into the test runner: run what interpreter exit runs, then go
        if leave is sys.exit:
            import atexit
            import gc

            env._file = None
            gc.collect()
            atexit._run_exitfuncs()
        os._exit(code)

    mine = env.begin_read()
    put(env, b"k", b"new")
    assert in_child(body, really_leave) == 0
    assert len(own_readers(env)) == 1
    for i in range(50):  # would take the snapshot's pages if its slot had been given up
        put(env, b"k", b"%d" % i)
    assert bytes(mine.txn.get(b"k", db=mine.db("records"))) == b"v"
    mine.end()
    assert get(env, b"k") == b"49"


def test_a_child_of_a_child_works_too(env):
    def body():
        put(env, b"1", b"child")
        with env.begin_read():
            return in_child(lambda: get(env, b"1") == b"child" and put(env, b"2", b"grandchild") is None) == 0

    assert in_child(body) == 0
    assert get(env, b"2") == b"grandchild"


def test_the_parents_transactions_are_dead_in_the_child(env):
    with env.begin_read() as r, env.begin_write() as w:
        w.txn.put(b"half", b"v", db=w.db("records"))

        def body():
            for call in (lambda: r.txn, lambda: w.txn, w.commit):
                with pytest.raises(Closed, match="parent process"):
                    call()
            r.end()
            w.abort()
            assert get(env, b"k") == b"v"
            try:
                env.begin_write(timeout=0.05)
            except Locked as error:
                return str(os.getppid()) in str(error)

        assert in_child(body) == 0
    assert get(env, b"half") == b"v"


def test_a_fork_while_other_threads_read_and_write(env):
    stop, wrong = threading.Event(), []

    def work(number):
        try:
            while not stop.is_set():
                put(env, b"t%d" % number, b"v")
                assert get(env, b"k") == b"v"
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        codes = [
            in_child(lambda n=n: put(env, b"c%d" % n, b"v") is None and get(env, b"k") == b"v")
            for n in range(10)
        ]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * 10
    assert not wrong
    assert [get(env, b"c%d" % n) for n in range(10)] == [b"v"] * 10


def test_the_child_of_a_memory_store_leaves_it_to_the_parent(tmp_path):
    with Environment.open(":memory:") as env:
        put(env, b"k", b"v")
        assert in_child(lambda: get(env, b"k") == b"v" and env.close() is None) == 0
        assert get(env, b"k") == b"v"
        assert env.path.exists()


def test_a_child_refuses_a_file_that_was_replaced(env):
    path = env.path
    path.rename(path.with_name("moved"))
    path.with_name("a.simdb-lock").rename(path.with_name("moved-lock"))
    Environment.open(path, mode="x").close()

    def body():
        try:
            env.begin_read()
        except OpenError as error:
            return "replaced by another file" in str(error)

    assert in_child(body) == 0
    assert get(env, b"k") == b"v"  # the parent still has the old file


_env: Environment | None = None


def _start(path):
    global _env
    _env = Environment.open(path, timeout=60)


def _work(number):
    put(_env, b"w%d" % number, b"%d" % os.getpid())
    time.sleep(0.01)
    return get(_env, b"k") == b"v" and get(_env, b"w%d" % number) is not None


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("inherit", [True, False])
def test_a_pool_of_eight_workers(env, method, inherit, monkeypatch):
    if inherit and method == "spawn":
        pytest.skip("a spawned process inherits nothing")
    context = multiprocessing.get_context(method)
    if inherit:
        monkeypatch.setattr(sys.modules[__name__], "_env", env)
        pool = context.Pool(8)
    else:
        pool = context.Pool(8, _start, (os.fspath(env.path),))
    with pool:
        for i in range(20):
            put(env, b"p%d" % i, b"v")
        assert all(pool.map(_work, range(40), chunksize=1))
    assert all(get(env, b"w%d" % i) for i in range(40))
    put(env, b"after", b"v")
    assert own_readers(env) == []
