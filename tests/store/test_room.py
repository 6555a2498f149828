"""Room: the map grows by itself (case D3), the disk fills up, a quota is reached, a commit fails in doubt."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import threading

import pytest
from store.processes import in_child, interpreter

from simindex.errors import DiskFull, Locked, MapFull, Poisoned, QuotaReached
from simindex.store import openfile
from simindex.store.env import Environment

TINY = 1 << 16  # bytes of map to begin with, where growth is tested
BLOCK = bytes(50_000)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.simdb"


def put(env, key, value=b"v", room=0):
    with env.begin_write(room=room) as w:
        w.txn.put(key, value, db=w.db("records"))


def delete(env, key):
    with env.begin_write() as w:
        return w.txn.delete(key, db=w.db("records"))


def keys(env):
    with env.begin_read() as r:
        return {bytes(key) for key in r.txn.cursor(db=r.db("records")).iternext(values=False)}


def fill(env, error, most=5000, put=put):
    """Put blocks, one a transaction, until `error`; return the keys that were stored."""
    stored = []

    def go_on():
        for i in range(most):
            put(env, b"%05d" % i, BLOCK)
            stored.append(b"%05d" % i)

    with pytest.raises(error):
        go_on()
    return stored


@pytest.fixture
def narrow(monkeypatch):
    """Let the map grow in small steps, so that it grows often."""
    monkeypatch.setattr(openfile, "_MARGIN", TINY)


# The map ----------------------------------------------------------------------------------------------------


def test_the_map_grows_by_itself_from_almost_nothing(path):
    with Environment.open(path, durability="relaxed", _map_bytes=TINY) as env:
        epochs = set()
        for i in range(300):
            put(env, b"%d" % i, bytes(200_000))
            epochs.add(env.epoch)
        assert len(keys(env)) == 300
        assert env.info().map_bytes > 300 * 200_000
        assert len(epochs) > 1


def test_a_batch_larger_than_the_map_is_refused_whole_and_fits_when_repeated(path):
    with Environment.open(path, _map_bytes=1 << 20) as env:
        put(env, b"k", b"v")
        value = bytes(100 << 20)
        with pytest.raises(MapFull, match="repeat the transaction"):
            put(env, b"big", value)
        assert keys(env) == {b"k"}
        for _ in range(10):
            with contextlib.suppress(MapFull):
                put(env, b"big", value)
                break
        assert keys(env) == {b"k", b"big"}


def test_room_asked_for_before_makes_the_batch_fit_at_once(path):
    with Environment.open(path, _map_bytes=1 << 20) as env:
        put(env, b"big", bytes(100 << 20), room=100 << 20)
        with env.begin_write() as w:
            with pytest.raises(MapFull):
                w.reserve(1 << 33)
            w.abort()
        with env.begin_write() as w:
            w.reserve(1 << 33)


def test_a_snapshot_of_this_thread_keeps_the_map_where_it_is(path, narrow):
    with Environment.open(path, _map_bytes=TINY, timeout=0.1) as env:
        put(env, b"k", b"v" * 3000)
        with env.begin_read() as r:
            address = bytes(r.txn.get(b"k", db=r.db("records")))
            with pytest.raises((MapFull, Locked)):
                put(env, b"big", bytes(1 << 25), room=1 << 25)
            assert bytes(r.txn.get(b"k", db=r.db("records"))) == address
        for _ in range(10):
            with contextlib.suppress(MapFull):
                put(env, b"big", bytes(1 << 25))
                break
        assert keys(env) == {b"k", b"big"}


GROWER = """
    import sys
    from simindex.errors import MapFull
    from simindex.store import openfile
    from simindex.store.env import Environment
    openfile._MARGIN = 1 << 16
    path, name, count = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
    env = Environment.open(path, durability="relaxed", timeout=60, _map_bytes=1 << 16)
    print("ready", flush=True)
    for start in range(0, count, 100):
        while True:
            try:
                with env.begin_write() as w:
                    for i in range(start, start + 100):
                        w.txn.put(b"%s%08d" % (name, i), b"%d" % i * 20, db=w.db("records"))
                    total = w.txn.get(b"total", db=w.db("meta"))
                    total = 0 if total is None else int(bytes(total))
                    w.txn.put(b"total", b"%d" % (total + 100), db=w.db("meta"))
                break
            except MapFull:
                pass
    print("done", flush=True)
"""


@pytest.mark.parametrize("count", [4_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_two_growing_processes_and_four_reading_threads(path, count, narrow):
    wrong, stop = [], threading.Event()

    def read():
        try:
            while not stop.is_set():
                with env.begin_read() as r:
                    total = r.txn.get(b"total", db=r.db("meta"))
                    entries = r.txn.stat(r.db("records"))["entries"]
                    assert entries == (0 if total is None else int(bytes(total)))
                    cursor = r.txn.cursor(db=r.db("records"))
                    if cursor.set_range(b"%c%08d" % (random.choice(b"ab"), random.randrange(count))):
                        key, value = bytes(cursor.key()), bytes(cursor.value())
                        assert value == b"%d" % int(key[1:]) * 20
        except BaseException as error:
            wrong.append(error)

    with Environment.open(path, durability="relaxed", timeout=60, _map_bytes=TINY) as env:
        threads = [threading.Thread(target=read) for _ in range(4)]
        with interpreter(GROWER, path, "a", count) as a, interpreter(GROWER, path, "b", count) as b:
            for thread in threads:
                thread.start()
            for process in (a, b):
                assert process.stdout.readline() == b"done\n"
            stop.set()
            for thread in threads:
                thread.join()
        assert not wrong
        assert len(keys(env)) == 2 * count
        put(env, b"after", b"v")


# The quota --------------------------------------------------------------------------------------------------


def put_reserved(env, key, value=BLOCK):
    with env.begin_write() as w:
        w.reserve(len(value))
        w.txn.put(key, value, db=w.db("records"))


def test_a_quota_stops_puts_and_lets_reads_and_deletes_go_on(path):
    quota = 4 << 20
    with Environment.open(path, max_bytes=quota, durability="relaxed") as env:
        stored = fill(env, QuotaReached, put=put_reserved)
        assert 70 < len(stored) < quota / len(BLOCK)
        assert path.stat().st_size <= quota + (1 << 20)
        assert keys(env) == set(stored)
        for key in stored[:40]:
            assert delete(env, key)
        for i in range(20):
            put_reserved(env, b"again%d" % i)
        assert len(keys(env)) == len(stored) - 20
    with Environment.open(path, max_bytes=2 * quota, durability="relaxed") as env:
        fill(env, QuotaReached, put=put_reserved)
        assert 140 < len(keys(env)) < 2 * quota / len(BLOCK)
    with Environment.open(path, max_bytes=quota, durability="relaxed") as env:  # smaller than the file is
        with pytest.raises(QuotaReached, match=f"max_bytes is {quota}"):
            put_reserved(env, b"k")
        for key in sorted(keys(env)):
            assert delete(env, key)
        put_reserved(env, b"k")
        assert keys(env) == {b"k"}


def test_a_quota_holds_also_for_writes_that_reserve_nothing(path):
    quota = 4 << 20
    for _ in range(3):
        with Environment.open(path, max_bytes=quota, durability="relaxed") as env:
            fill(env, QuotaReached)
            assert path.stat().st_size <= quota + (3 << 20)
            assert len(keys(env)) >= 70


def test_reserve_names_what_is_used_what_is_asked_and_the_quota(path):
    with Environment.open(path, max_bytes=1 << 20) as env, env.begin_write() as w:
        w.reserve(500_000)
        with pytest.raises(
            QuotaReached, match=r"\d+ bytes in use and 2000000 to be added, max_bytes is 1048576"
        ):
            w.reserve(2_000_000)


# The disk ---------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True)
    if done.returncode:
        pytest.skip("this system does not let us mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_a_clean_error_and_reads_and_deletes_go_on(small_disk):
    with Environment.open(small_disk / "a.simdb") as env:
        stored = fill(env, DiskFull)
        assert len(stored) > 100
        assert keys(env) == set(stored)
        for key in stored[:60]:
            assert delete(env, key)
        for i in range(30):
            put(env, b"again%d" % i, BLOCK)
        with pytest.raises(DiskFull), env.begin_write() as w:
            w.reserve(100 << 20)
        expected = keys(env)
    with Environment.open(small_disk / "a.simdb") as env:
        assert keys(env) == expected
        assert len(expected) == len(stored) - 30


def test_deletes_work_when_others_fill_the_disk(small_disk):
    with Environment.open(small_disk / "a.simdb") as env:
        with env.begin_write() as w:  # one transaction: it leaves no free pages behind
            for i in range(40):
                w.txn.put(b"%05d" % i, BLOCK, db=w.db("records"))
        with open(small_disk / "other", "wb", buffering=0) as other, contextlib.suppress(OSError):
            while True:
                other.write(bytes(4096))
        for i in range(40):
            assert delete(env, b"%05d" % i)
        put(env, b"k", BLOCK)
        assert keys(env) == {b"k"}


def test_creating_or_copying_on_a_full_disk_leaves_no_file(small_disk, path):
    with Environment.open(path) as env:
        for i in range(100):
            put(env, b"%05d" % i, bytes(100_000))
        with pytest.raises(DiskFull):
            env.copy(small_disk / "copy.simdb")
        (small_disk / "other").touch()
        with open(small_disk / "other", "wb", buffering=0) as other, contextlib.suppress(OSError):
            while True:
                other.write(bytes(4096))
        with pytest.raises(DiskFull):
            Environment.open(small_disk / "a.simdb")
        assert [p.name for p in small_disk.iterdir()] == ["other"]
        assert len(keys(env)) == 100


def test_a_limit_on_file_sizes_is_a_clean_error(path):
    def body():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
        with Environment.open(path) as env:
            stored = fill(env, DiskFull)
            assert keys(env) == set(stored)
            for key in stored[:40]:
                assert delete(env, key)
            for i in range(10):
                put(env, b"again%d" % i, BLOCK)
            return len(keys(env)) == len(stored) - 30 > 10

    assert in_child(body) == 0


# Failures of the device -------------------------------------------------------------------------------------


def descriptors(path):
    """Return LMDB's descriptors of a data file: (data, meta pages). The second writes synchronously."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.path.samefile(f"/proc/self/fd/{name}", path):
                with open(f"/proc/self/fdinfo/{name}") as info:
                    flags = int(dict(line.split(":", 1) for line in info)["flags"].strip(), 8)
                found.append((bool(flags & os.O_DSYNC), int(name)))
    found.sort()
    assert [sync for sync, _ in found] == [False, True], "LMDB has two descriptors of the file"
    return [number for _, number in found]


@contextlib.contextmanager
def broken(descriptor):
    """Let every write to a descriptor fail with ENOSPC."""
    kept = os.dup(descriptor)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, descriptor)
    try:
        yield
    finally:
        os.dup2(kept, descriptor)
        os.close(full)
        os.close(kept)


def test_a_failed_write_of_data_pages_stores_nothing_and_the_handle_goes_on(path):
    with Environment.open(path) as env:
        put(env, b"k")
        data, _ = descriptors(path)
        with broken(data), pytest.raises(DiskFull, match="nothing was stored"):
            put(env, b"lost")
        assert keys(env) == {b"k"}
        put(env, b"k2")
    with Environment.open(path) as env:
        assert keys(env) == {b"k", b"k2"}


def test_a_failed_write_of_the_meta_page_poisons_the_handle_until_reopened(path):
    env = Environment.open(path)
    put(env, b"k")
    _, meta = descriptors(path)
    with broken(meta), pytest.raises(Poisoned, match="close every handle"):
        put(env, b"lost")
    for _ in range(2):
        with pytest.raises(Poisoned):
            put(env, b"k2")
    other = Environment.open(path)  # shares the poisoned handle
    with pytest.raises(Poisoned):
        put(other, b"k2")
    env.close()
    other.close()
    with Environment.open(path) as env:
        assert keys(env) in ({b"k"}, {b"k", b"lost"})
        put(env, b"k3")
        assert b"k3" in keys(env)
