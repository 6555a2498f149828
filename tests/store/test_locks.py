"""One writer at a time: between threads, between processes, after kill -9."""

import os
import signal
import threading
import time

import pytest
from store.processes import interpreter

from simindex.errors import Locked, WriteError
from simindex.store.env import Environment

HOLDER = """
    import sys, time
    from simindex.store.env import Environment
    env = Environment.open(sys.argv[1])
    w = env.begin_write()
    w.txn.put(b"half", b"done", db=w.db("records"))
    print("ready", flush=True)
    sys.stdin.read()
    w.commit()
    env.close()
    print("committed", flush=True)
"""


@pytest.fixture
def path(tmp_path):
    Environment.open(tmp_path / "a.simdb").close()
    return tmp_path / "a.simdb"


def write(env, timeout=None):
    with env.begin_write(timeout) as w:
        w.txn.put(b"k", b"v", db=w.db("records"))


def test_a_second_process_waits_then_is_told_pid_and_command_line(path):
    with Environment.open(path) as env, interpreter(HOLDER, path) as other:
        start = time.monotonic()
        with pytest.raises(Locked) as caught:
            env.begin_write(timeout=0.2)
        assert 0.2 <= time.monotonic() - start < 2
        assert f"process {other.pid}" in str(caught.value)
        assert "-c import sys, time" in str(caught.value)  # the command line, on one line
        with env.begin_read() as r:
            assert r.txn.get(b"half", db=r.db("records")) is None


def test_a_waiting_writer_goes_on_as_soon_as_the_other_commits(path):
    with Environment.open(path) as env, interpreter(HOLDER, path) as other:
        threading.Timer(0.2, other.stdin.close).start()
        start = time.monotonic()
        write(env, timeout=20)
        assert time.monotonic() - start < 10
        with env.begin_read() as r:
            assert r.txn.get(b"half", db=r.db("records")) is not None


def test_opening_and_reading_do_not_wait_for_a_writer(path):
    with interpreter(HOLDER, path) as other:
        start = time.monotonic()
        with Environment.open(path, timeout=30) as env:
            with env.begin_read() as r:
                assert r.txn.get(b"half", db=r.db("records")) is None
            assert time.monotonic() - start < 5
            with pytest.raises(Locked, match=str(other.pid)):
                env.begin_write(timeout=0.05)
            other.stdin.close()
            write(env, timeout=20)  # reopened for writing by now
            with env.begin_read() as r:
                assert r.txn.get(b"half", db=r.db("records")) is not None
                assert r.txn.get(b"k", db=r.db("records")) is not None


def test_the_lock_of_a_killed_process_does_not_block(path):
    with Environment.open(path) as env:
        for _ in range(3):
            with interpreter(HOLDER, path) as other:
                os.kill(other.pid, signal.SIGKILL)
                other.wait()
                write(env, timeout=2)
        with env.begin_read() as r:
            assert r.txn.get(b"half", db=r.db("records")) is None


def test_a_child_that_outlives_its_killed_parent_does_not_keep_the_lock(path):
    text = HOLDER.replace(
        'print("ready"', 'pid = os.fork()\n    if pid == 0: time.sleep(60)\n    print("ready"'
    )
    text = text.replace("import sys, time", "import os, sys, time")
    with Environment.open(path) as env, interpreter(text, path) as other:
        with open(f"/proc/{other.pid}/task/{other.pid}/children") as children:
            orphan = int(children.read().split()[0])
        try:
            os.kill(other.pid, signal.SIGKILL)
            other.wait()
            write(env, timeout=2)
        finally:
            os.kill(orphan, signal.SIGKILL)


def test_neither_of_two_busy_processes_starves(path):
    busy = """
        import sys
        from simindex.store.env import Environment
        env = Environment.open(sys.argv[1], durability="relaxed")
        print("ready", flush=True)
        while True:
            with env.begin_write(30) as w:
                w.txn.put(b"theirs", b"v", db=w.db("records"))
    """
    with Environment.open(path, durability="relaxed") as env, interpreter(busy, path):
        for _ in range(20):
            write(env, timeout=2)


def test_neither_of_two_busy_threads_starves(path):
    with Environment.open(path, durability="relaxed") as env:
        counts = {"a": 0, "b": 0}
        stop = threading.Event()

        def work(name):
            while not stop.is_set():
                write(env, timeout=5)
                counts[name] += 1

        threads = [threading.Thread(target=work, args=(name,)) for name in counts]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join()
        assert min(counts.values()) >= 0.2 * max(counts.values())


def test_a_write_inside_a_write_of_the_same_thread_is_an_error_at_once(path):
    with Environment.open(path) as env, env.begin_write():
        start = time.monotonic()
        with pytest.raises(WriteError, match="already inside a write"):
            env.begin_write(timeout=5)
        assert time.monotonic() - start < 1


def test_a_second_writing_thread_waits_then_is_told_which_thread(path):
    with Environment.open(path) as env:
        said = []

        def other():
            try:
                env.begin_write(timeout=0.05)
            except Locked as error:
                said.append(str(error))

        with env.begin_write():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert "'MainThread'" in said[0]
        assert str(os.getpid()) in said[0]


def test_a_forgotten_write_transaction_lets_go_of_the_lock(path):
    with Environment.open(path) as env:
        w = env.begin_write()
        w.txn.put(b"k", b"v", db=w.db("records"))
        del w
        with env.begin_write(timeout=0.5) as w:
            assert w.txn.get(b"k", db=w.db("records")) is None
