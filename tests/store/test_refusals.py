"""Files that are not a store, or not this version's: a named error, and not a byte written anywhere."""

import contextlib
import os
import resource
import shutil
import struct
from pathlib import Path

import lmdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store.processes import in_child, run

from simindex.errors import (
    CorruptStore,
    EngineMismatch,
    FormatTooNew,
    NotAStore,
    OpenError,
    SimindexError,
    UnsafeFileSystem,
)
from simindex.store import filesystem
from simindex.store.env import Environment
from simindex.store.peek import Peek

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A small sound store, to be copied and damaged."""
    path = tmp_path_factory.mktemp("sound") / "a.simdb"
    with Environment.open(path) as env:
        for i in range(20):
            with env.begin_write() as w:
                w.txn.put(b"%04d" % i, bytes([i]) * 9000, db=w.db("records"))
                w.txn.put(b"c%04d" % i, bytes([i]) * 300, db=w.db("meta"))
    return path


@pytest.fixture
def path(tmp_path, sound):
    """A copy of the sound store."""
    return shutil.copy(sound, tmp_path / "a.simdb")


def refused(path, kind, match, **options):
    """Check that opening fails in both modes, and that nothing in the folder changed."""
    folder = path.parent
    before = {
        p.name: (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else None) for p in folder.iterdir()
    }
    for mode in ("r", "w"):
        with pytest.raises(kind, match=match):
            Environment.open(path, mode=mode, **options)
    assert before == {
        p.name: (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else None) for p in folder.iterdir()
    }


def test_a_folder(tmp_path):
    (tmp_path / "d").mkdir()
    refused(tmp_path / "d", NotAStore, "a folder")


def test_a_device():
    for mode in ("r", "w"):
        with pytest.raises(NotAStore, match="not a regular file"):
            Environment.open("/dev/null", mode=mode)


def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "p")
    with pytest.raises(NotAStore, match="not a regular file"):
        Environment.open(tmp_path / "p", mode="r")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "empty file"),
        (b"hello, world\n" * 1000, "not a simindex store"),
        (b"x", "not a"),
        (bytes(9000), "not a"),
    ],
)
def test_an_empty_or_foreign_file(tmp_path, data, match):
    (tmp_path / "t").write_bytes(data)
    refused(tmp_path / "t", NotAStore, match)


def test_an_lmdb_file_of_somebody_else(tmp_path):
    for name in (None, b"meta", b"other"):
        file = tmp_path / f"{name}.mdb"
        run(
            """
            import lmdb, sys
            name = None if sys.argv[2] == "None" else sys.argv[2].encode()
            env = lmdb.open(sys.argv[1], subdir=False, max_dbs=4, lib_version=0)
            db = env.open_db(name)
            with env.begin(write=True) as txn:
                for i in range(1000):
                    txn.put(b"%06d" % i, b"v" * 100, db=db)
            """,
            file,
            name.decode() if name else None,
        )
        os.unlink(f"{file}-lock")
        refused(file, NotAStore, "an LMDB file, but not a simindex store")


def test_an_lmdb_file_of_the_other_engine(tmp_path):
    path = tmp_path / "one.mdb"
    env = lmdb.open(os.fspath(path), subdir=False, lib_version=1)
    with env.begin(write=True) as txn:
        txn.put(b"k", b"v")
    env.close()
    refused(path, EngineMismatch, r"engine 1\.0 \(data format 3\).*lmdb-0\.9")


def test_a_newer_format(path):
    data = bytearray(path.read_bytes())
    at = data.rindex(b"SIMINDEX")
    while at >= 0:
        data[at + 8 : at + 12] = (9).to_bytes(4, "big")
        at = data.rfind(b"SIMINDEX", 0, at)
    path.write_bytes(data)
    refused(path, FormatTooNew, "format 9, this version reads 1 to 1")


@pytest.mark.parametrize("size", [512, 2 * PAGE, 4 * PAGE, 16384 if PAGE != 16384 else 4096])
def test_another_page_size(path, size):
    if size == PAGE:
        pytest.skip("this machine's own page size")
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 40, size)
    path.write_bytes(data)
    refused(path, EngineMismatch, f"pages of {size} bytes, this machine uses {PAGE}")


def test_a_big_endian_file(path):
    data = bytearray(path.read_bytes())
    data[16:20] = data[16:20][::-1]
    path.write_bytes(data)
    refused(path, EngineMismatch, "big-endian")


def test_every_truncation_is_refused_and_none_kills_the_process(path, sound):
    with Peek(path) as peek:
        need = peek.meta.last_page + 1
    assert need * PAGE <= path.stat().st_size
    for size in [1, 100, PAGE - 1, *(pages * PAGE + pages % 3 for pages in range(1, need))]:
        shutil.copy(sound, path)
        os.truncate(path, size)
        refused(path, NotAStore, "not a simindex store" if size < 152 else "cut short")


def test_a_file_without_pages_that_are_free_anyway_is_sound(path):
    # A transaction takes pages at the end of the file and gives them back: LMDB never writes them.
    with Environment.open(path) as env:
        with env.begin_write() as w:
            w.txn.put(b"big", bytes(1 << 22), db=w.db("records"))
            w.txn.delete(b"big", db=w.db("records"))
        end = (env._file.env.info()["last_pgno"] + 1) * PAGE
    os.truncate(path, min(path.stat().st_size, end - 100 * PAGE))
    with Environment.open(path) as env, env.begin_read() as r:
        assert bytes(r.txn.get(b"0003", db=r.db("records"))) == bytes([3]) * 9000


def test_a_longer_file_than_needed_is_sound(path):
    os.truncate(path, path.stat().st_size + 12345)
    with Environment.open(path) as env, env.begin_read() as r:
        assert r.txn.get(b"0003", db=r.db("records")) is not None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_peek_survives_any_damage(tmp_path, sound, data):
    contents = bytearray(sound.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(
            st.integers(0, 200) | st.integers(PAGE, PAGE + 200) | st.integers(0, len(contents) - 9)
        )
        contents[at : at + 8] = data.draw(st.binary(min_size=8, max_size=8))
    size = data.draw(st.just(len(contents)) | st.integers(0, len(contents)))
    damaged = tmp_path / "d"
    damaged.write_bytes(contents[:size])
    try:
        with Peek(damaged) as peek:
            assert peek.check().format == 1
    except SimindexError:
        pass


def test_a_damaged_identity_is_named(path):
    data = bytearray(path.read_bytes())
    at = data.find(b"SIMINDEX")
    while at >= 0:
        data[at + 20] ^= 1
        at = data.find(b"SIMINDEX", at + 1)
    path.write_bytes(data)
    refused(path, CorruptStore, "fails its checksum")


# File systems -----------------------------------------------------------------------------------------------

MOUNTS = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:5 / /dev rw - devtmpfs udev rw
40 21 0:44 / /mnt/share rw,relatime - nfs4 server:/x rw,vers=4.2
41 40 0:45 / /mnt/share/local rw - tmpfs tmpfs rw
42 21 0:46 / /mnt/with\040space rw master:3 - cifs //server/x rw
43 21 0:47 / /mnt/fast rw - overlay overlay rw
44 21 0:48 / /mnt/ssh rw - fuse.sshfs me@there:/ rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/a.simdb", "ext4"),
        ("/mnt/share/a.simdb", "nfs4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/shared/a.simdb", "ext4"),
        ("/mnt/share/local/a.simdb", "tmpfs"),
        ("/mnt/with space/deep/er/a.simdb", "cifs"),
        ("/mnt/fast/a", "overlay"),
        ("/mnt/ssh/a", "fuse.sshfs"),
    ],
)
def test_the_kind_of_file_system_is_that_of_the_nearest_mount(tmp_path, path, kind):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    assert filesystem.kind(path, table) == kind
    if kind in ("nfs4", "cifs", "fuse.sshfs"):
        with pytest.raises(UnsafeFileSystem, match=f"({kind}).*force=True"):
            filesystem.refuse_network(path, table)
    else:
        filesystem.refuse_network(path, table)


def test_a_network_file_system_is_refused_unless_forced(path, monkeypatch):
    monkeypatch.setattr(filesystem, "kind", lambda path, mounts=None: "nfs4")
    refused(path, UnsafeFileSystem, "nfs4")
    with pytest.raises(UnsafeFileSystem):
        Environment.open(path.parent / "new.simdb")
    assert not (path.parent / "new.simdb").exists()
    with Environment.open(path, force=True) as env, env.begin_read():
        pass


# Permissions ------------------------------------------------------------------------------------------------


def as_nobody(body):
    """Run body() in a child without root's privileges."""

    def child():
        if os.geteuid() == 0:
            os.setegid(65534)
            os.seteuid(65534)
        return body()

    return in_child(child)


@pytest.fixture
def shared(tmp_path, sound):
    """A store in a folder that everyone may enter."""
    folder = tmp_path
    while folder != folder.parent:
        if folder.stat().st_uid == os.geteuid() and folder.stat().st_mode & 0o55 != 0o55:
            folder.chmod(folder.stat().st_mode | 0o55)
        folder = folder.parent
    shutil.copy(sound, tmp_path / "a.simdb")
    yield tmp_path / "a.simdb"
    tmp_path.chmod(0o755)


def reads(path, **options):
    with Environment.open(path, mode="r", **options) as env, env.begin_read() as r:
        return bytes(r.txn.get(b"0003", db=r.db("records"))) == bytes([3]) * 9000


def test_a_store_that_nobody_can_write_is_read_without_a_lock_file(shared):
    shared.chmod(0o444)
    shared.parent.chmod(0o555)
    assert as_nobody(lambda: reads(shared)) == 0
    assert not shared.with_name("a.simdb-lock").exists()


def test_a_store_that_others_may_write_is_not_read_without_a_lock_unless_forced(shared):
    shared.chmod(0o644)
    shared.parent.chmod(0o555)

    def body():
        with pytest.raises(OpenError, match="chmod a-w"):
            Environment.open(shared, mode="r")
        return reads(shared, force=True)

    if os.geteuid() != 0:
        pytest.skip("needs a file of another user")
    assert as_nobody(body) == 0


def test_writing_without_permission_says_what_lacks(shared):
    shared.chmod(0o444)

    def body():
        with pytest.raises(OpenError, match='open it with mode="r"'):
            Environment.open(shared)
        with pytest.raises(OpenError, match=r"new\.simdb: cannot be opened: Permission"):
            Environment.open(shared.parent / "new.simdb")
        return True

    shared.parent.chmod(0o555)
    assert as_nobody(body) == 0


# Limits of the process --------------------------------------------------------------------------------------


def test_too_little_address_space_gives_a_smaller_map(path):
    def body():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
        with Environment.open(path) as env:
            with env.begin_write() as w:
                w.txn.put(b"k", b"v", db=w.db("records"))
            return 1 << 20 < env.info().map_bytes <= 1 << 30

    assert in_child(body) == 0


def test_no_address_space_at_all_is_a_clean_error(path):
    def body():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 24), used + (1 << 24)))
        with pytest.raises(OpenError, match="address space"):
            Environment.open(path)
        return True

    assert in_child(body) == 0


def test_too_many_open_files_is_a_clean_error(path):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def body():
        with Environment.open(path.with_name("other.simdb")) as other:
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
            held, said = [], []
            with contextlib.suppress(OSError):
                while True:
                    held.append(os.open("/dev/null", os.O_RDONLY))
            for _ in range(8):  # none free, one free, ...
                try:
                    Environment.open(path).close()
                except OpenError as error:
                    said.append(str(error).lower())
                os.close(held.pop())
            assert [text for text in said if "too many open files" in text] == said
            assert 3 <= len(said) < 8
            with other.begin_read(), Environment.open(path) as env, env.begin_read():
                return True

    assert in_child(body) == 0
