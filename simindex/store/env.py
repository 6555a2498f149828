"""Opening a store, and what an opener holds."""

import contextlib
import importlib.metadata
import os
import tempfile
from pathlib import Path
from typing import Any, Literal

import lmdb

from simindex.errors import Closed, OpenError, SchemaError
from simindex.store import registry
from simindex.store.meta import IDENTITY_KEY, Identity
from simindex.store.openfile import DATABASES, ENGINE_VERSION, OpenFile
from simindex.store.transactions import RawRead, RawWrite

MAP_BYTES = 1 << 40
_FIRST_MAP = 1 << 26


class Environment:
    """One opener's hold on a store file; all openers of a process share the one open file below it."""

    def __init__(
        self, file: OpenFile, mode: str, folder: "tempfile.TemporaryDirectory[str] | None" = None
    ) -> None:
        self._file: OpenFile | None = file
        self._mode = mode
        self._folder = folder
        self.path = file.path

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
    ) -> "Environment":
        if mode not in ("w", "r", "x"):
            raise OpenError(f'mode is {mode!r}; it must be "w", "r" or "x"')
        folder = None
        if os.fspath(path) == ":memory:":
            folder = tempfile.TemporaryDirectory(prefix="simindex-", ignore_cleanup_errors=True)
            path = Path(folder.name) / "memory.simdb"
        where = Path(os.path.realpath(path))
        with registry.locked() as files:
            if not where.exists():
                if mode == "r":
                    raise OpenError(f"{path}: no such file")
                create(where)
            elif mode == "x" or bulk_new:
                raise OpenError(f"{path}: exists already")
            key = registry.file_key(where)
            file = files.get(key)
            if file is None:
                file = OpenFile(
                    where, "r" if mode == "r" else "w", durability, max_bytes, _map_bytes,
                    sync=not (bulk_new or folder), timeout=timeout,
                )  # fmt: skip
                files[key] = file
            elif (file.durability, file.max_bytes) != (durability, max_bytes) and mode != "r":
                raise SchemaError(
                    f"{path}: open in this process with durability={file.durability!r}, "
                    f"max_bytes={file.max_bytes}; "
                    f"asked for durability={durability!r}, max_bytes={max_bytes}: use the same settings"
                )
            file.users += 1
        return cls(file, mode, folder)

    def _open_file(self) -> OpenFile:
        if self._file is None:
            raise Closed(f"{self.path} is closed")
        return self._file

    def begin_read(self) -> RawRead:
        """Begin a snapshot: about a microsecond; nested and from any thread."""
        return self._open_file().begin_read()

    def begin_write(self, timeout: float | None = None) -> RawWrite:
        """Begin the one write transaction; Locked after `timeout` seconds (None: the value given to open)."""
        return self._open_file().begin_write(timeout)

    def db(self, kind: str) -> Any:
        """Return the lmdb handle of one of the six databases. Ask anew for each transaction: it changes with
        the epoch.
        """
        return self._open_file().databases[kind]

    @property
    def epoch(self) -> int:
        """Changes whenever addresses kept from earlier transactions are void."""
        return self._open_file().epoch

    def close(self) -> None:
        """Let go of the file; the last opener's close closes it, once other threads' transactions have
        ended.
        """
        file, self._file = self._file, None
        if file is None:
            return
        with registry.locked() as files:
            file.users -= 1
            if file.users == 0:
                files.pop(file.key, None)
                file.close(file.timeout)
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> "Environment":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def create(path: Path) -> None:
    """Make an empty store, complete or not at all: written under another name, synced, then linked into
    place.
    """
    if not path.parent.is_dir():
        raise OpenError(f"{path}: there is no folder {path.parent}")
    with tempfile.TemporaryDirectory(prefix=path.name + ".new-", dir=path.parent) as folder:
        made = Path(folder) / "store"
        env = lmdb.Environment(
            os.fspath(made), map_size=_FIRST_MAP, subdir=False, max_dbs=len(DATABASES),
            lib_version=ENGINE_VERSION, mode=0o666,
        )  # fmt: skip
        try:
            with env.begin(write=True) as txn:
                for name in DATABASES:
                    db = env.open_db(name.encode(), txn=txn)
                    if name == "meta":
                        meta = db
                identity = Identity(created_by=_version(), page_bytes=env.stat()["psize"])
                txn.put(IDENTITY_KEY, identity.encode(), db=meta)
        finally:
            env.close()
        with contextlib.suppress(FileExistsError):  # another process was faster: its store is as good
            os.link(made, path)


def _version() -> str:
    try:
        return importlib.metadata.version("simindex")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
