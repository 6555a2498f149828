"""Opening a store, and what an opener holds."""

import os
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any, Literal, Self

import lmdb

from simindex.errors import Closed, OpenError, ReadOnly, SchemaError, SimindexError, shown
from simindex.store import create, failures, filesystem, overview, registry, serial
from simindex.store.meta import Identity
from simindex.store.openfile import OpenFile, lock_path
from simindex.store.peek import Peek
from simindex.store.transactions import RawRead, RawWrite

MEMORY = ":memory:"
_FOREVER = 1e8  # seconds: three years; what the system calls take
MAP_BYTES = 1 << 40 if sys.maxsize > 1 << 32 else 1 << 30  # address space, not memory or disk


class Environment:
    """One opener's hold on a store file. All openers of a process share the one open file below it.

    path: absolute, symlinks resolved; identity: what the file says of itself.
    """

    def __init__(self, file: OpenFile, mode: str, identity: Identity, folder: str | None = None) -> None:
        """For `open` alone."""
        self._file: OpenFile | None = file
        self._mode = mode
        self.path = file.path
        self.identity = identity
        self._remove = weakref.finalize(self, _remove, folder, os.getpid()) if folder else None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        mode: Literal["w", "r", "x"] = "w",
        durability: Literal["full", "relaxed"] = "full",
        max_bytes: int | None = None,
        timeout: float = 5.0,
        force: bool = False,
        bulk_new: bool = False,
        _map_bytes: int = MAP_BYTES,
    ) -> Self:
        """Open a store file, or create it (mode "w": if missing; "x": only if missing; "r": read only).

        durability: "full" (a commit is on the disk when it returns) or "relaxed" (after a power failure the
        last commits may be gone, the rest is whole). max_bytes: the most that the file may take. timeout:
        seconds that a write waits for other writers. force: open on a network file system, or read where no
        reader can be registered. bulk_new: only a new file, without any sync until `sync()`. ":memory:" is a
        private temporary file without syncs, removed at close.

        A file that this process has open already is shared; durability and max_bytes must then be the same.

        Raises OpenError and below: NotAStore, FormatTooNew, EngineMismatch, UnsafeFileSystem (nothing was
        written); CorruptStore; SchemaError for bad arguments and for settings that contradict another
        opener's.
        """
        timeout = _check_arguments(mode, durability, max_bytes, timeout, force)
        serial.warn()
        folder = None
        if isinstance(path, str) and path == MEMORY:
            folder = tempfile.mkdtemp(prefix="simindex-")
            path = Path(folder) / "memory.simdb"
        try:
            file, identity = _share(
                _real_path(path), mode, durability, max_bytes, timeout, force,
                bulk_new or bool(folder), bulk_new, _map_bytes,
            )  # fmt: skip
        except BaseException as error:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and not isinstance(error, SimindexError):
                raise OpenError(f"{shown(path, 200)}: {error.strerror or error}") from error
            raise
        return cls(file, mode, identity, folder)

    @property
    def _open_file(self) -> OpenFile:
        if self._file is None:
            raise Closed(f"{self.path} is closed")
        return self._file

    def begin_read(self) -> RawRead:
        """Begin a snapshot: one to two microseconds; nested, and from any thread."""
        file = self._file
        if file is None:
            raise Closed(f"{self.path} is closed")
        return file.begin_read()

    def begin_write(self, timeout: float | None = None, room: int = 0) -> RawWrite:
        """Begin the one write transaction; waits up to `timeout` seconds (None: the value given to open) for
        other writers, then raises Locked, which names the one in the way.

        room: bytes about to be put, if known: the map is enlarged before, not in the middle. Raises also
        Poisoned, ReadOnly, Closed, and WriteError for a write inside a write of the same thread.
        """
        file = self._open_file
        if timeout is not None:
            timeout = check_timeout(timeout)
        if self._mode == "r":
            raise ReadOnly(f'{self.path} was opened with mode="r"')
        return file.begin_write(timeout, room)

    def db(self, kind: str) -> Any:
        """Return the lmdb handle of one of the six databases, good for the present epoch (better: raw.db)."""
        return self._open_file.databases[kind]

    @property
    def epoch(self) -> int:
        """Changes whenever addresses kept from earlier transactions are void."""
        return self._open_file.epoch

    def info(self) -> overview.Info:
        """Return sizes and readers."""
        return overview.look(self._open_file)

    def sync(self) -> None:
        """Put everything committed on the disk, whatever the durability."""
        file = self._open_file
        with file.begin_read():
            try:
                file.env.sync(True)
            except lmdb.Error as error:
                raise failures.writing(error, self.path) from error

    def copy(self, path: str | os.PathLike[str], compact: bool = True) -> None:
        """Write a copy of the store as it is now, while others read and write; refuses an existing file.

        compact: leave free pages out. The copy appears whole, synced, under its name. Raises OpenError,
        DiskFull.
        """
        target = _real_path(path)
        file = self._open_file
        with file.begin_read():
            env = file.env
            if target.exists() or not create.copy(target, lambda out: env.copyfd(out, compact=compact)):
                raise OpenError(f"{path}: exists already; a copy never overwrites")

    def close(self) -> None:
        """Let go of the file; the last opener's close closes it.

        That close ends this thread's own transactions, waits for those of other threads, and raises Locked
        (the store stays open) if they outlast the timeout. Closing twice does nothing.
        """
        file = self._file
        if file is None:
            return
        file.release(file.timeout)
        self._file = None
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_arguments(
    mode: object, durability: object, max_bytes: object, timeout: object, force: object
) -> float:
    if not isinstance(mode, str) or mode not in ("w", "r", "x"):
        raise SchemaError(f'mode is {shown(mode)}; it must be "w", "r" or "x"')
    if not isinstance(durability, str) or durability not in ("full", "relaxed"):
        raise SchemaError(f'durability is {shown(durability)}; it must be "full" or "relaxed"')
    if max_bytes is not None and (
        isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1 << 16
    ):
        raise SchemaError(f"max_bytes is {shown(max_bytes)}; it must be an integer of at least {1 << 16}")
    if not isinstance(force, bool):
        raise SchemaError(f"force is {shown(force)}; it must be True or False")
    return check_timeout(timeout)


def check_timeout(timeout: object) -> float:
    """Return seconds to wait, infinity as some years. SchemaError unless a number that is not negative."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise SchemaError(f"timeout is {shown(timeout)}; it must be a number of seconds that is not negative")
    return float(min(timeout, _FOREVER))


def _real_path(path: object) -> Path:
    try:
        name = os.fspath(path)  # type: ignore[call-overload]
        if isinstance(name, bytes):
            name = os.fsdecode(name)
        if not name or "\0" in name:
            raise ValueError("a path is not empty and holds no NUL")
        return Path(os.path.realpath(name))
    except (TypeError, ValueError) as error:
        raise SchemaError(f"path is {shown(path)}: it is no path of a file ({error})") from error


def _share(
    path: Path, mode: str, durability: str, max_bytes: int | None, timeout: float, force: bool,
    unsynced: bool, new: bool, map_bytes: int,
) -> tuple[OpenFile, Identity]:  # fmt: skip
    """Return the open file at `path`, with one user more."""
    with registry.locked() as files:
        if not force:
            filesystem.refuse_network(path)
        if mode == "r":
            if not path.exists():
                raise OpenError(f"{path}: no such file")
        elif not path.exists():
            if not create.create(path) and (mode == "x" or new):
                raise OpenError(f"{path}: exists already")
        elif mode == "x" or new:
            raise OpenError(f"{path}: exists already")
        with Peek(path) as peek:
            identity = peek.check()
            key = registry.file_key(path)
        file = files.get(key)
        if file is not None and file.is_stale():
            file = None
        wants_write = mode != "r"
        if file is None:
            file = files[key] = OpenFile(
                path, "w" if wants_write else "r", durability, max_bytes, map_bytes,
                sync=not unsynced, lock=_can_lock(path, wants_write, force), timeout=timeout,
            )  # fmt: skip
        elif wants_write and file.mode == "r":
            _can_lock(path, True, force)
            file.allow_writes(durability, max_bytes, timeout)
        elif wants_write and (file.durability, file.max_bytes) != (durability, max_bytes):
            raise SchemaError(
                f"{path} is open in this process with durability={file.durability!r}, "
                f"max_bytes={file.max_bytes}; asked for durability={durability!r}, max_bytes={max_bytes}: "
                "openers share one handle, so use the same settings"
            )
        file.users += 1
        return file, identity


def _can_lock(path: Path, writing: bool, force: bool) -> bool:
    """Whether readers can be registered in the lock file; raises OpenError where doing without is not safe.

    Without registration a writer may overwrite what is being read. So it takes a file that nobody can write
    (a read-only file system, or no write permission for anyone), or force=True.
    """
    if writing and not _may(path, os.R_OK | os.W_OK):
        raise OpenError(f'{path}: no permission to write; open it with mode="r"')
    lock = lock_path(path)
    may = _may(lock, os.R_OK | os.W_OK) if lock.exists() else _may(path.parent, os.W_OK | os.X_OK)
    if may:
        return True
    if writing:
        raise OpenError(f"{lock}: no permission to write the lock file, which every writer and reader needs")
    if force or os.statvfs(path).f_flag & os.ST_RDONLY or not path.stat().st_mode & 0o222:
        return False
    raise OpenError(
        f"{lock}: no permission to write the lock file, and others may write the store meanwhile: get that "
        "permission, make the store read-only for everyone (chmod a-w), or pass force=True if nobody writes"
    )


def _may(path: Path, what: int) -> bool:
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)
