"""New store files, complete or not at all: written under another name, synced, then linked into place."""

import contextlib
import importlib.metadata
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import lmdb

from simindex.errors import OpenError
from simindex.store import failures
from simindex.store.layout import DATABASES, IDENTITY, META
from simindex.store.meta import Identity
from simindex.store.openfile import ENGINE_VERSION

_FIRST_MAP = 1 << 24


def create(path: Path) -> bool:
    """Make an empty store at `path`; False if there was a file already (then nothing is changed)."""
    return _place(path, _fill)


def copy(path: Path, write: Callable[[int], None]) -> bool:
    """Make `path` from what `write` writes to a file descriptor; False if there was a file already."""

    def fill(made: Path) -> None:
        file = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            write(file)
            os.fsync(file)
        finally:
            os.close(file)

    return _place(path, fill)


def _fill(made: Path) -> None:
    env = lmdb.Environment(
        os.fspath(made), map_size=_FIRST_MAP, subdir=False, max_dbs=len(DATABASES), mode=0o666,
        lib_version=ENGINE_VERSION, lock=False,
    )  # fmt: skip
    try:
        with env.begin(write=True) as txn:
            handles = {name: env.open_db(name.encode(), txn=txn) for name in DATABASES}
            identity = Identity(created_by=_version(), page_bytes=env.stat()["psize"])
            txn.put(IDENTITY, identity.encode(), db=handles[META])
    finally:
        env.close()


def _place(path: Path, fill: Callable[[Path], None]) -> bool:
    if not path.parent.is_dir():
        raise OpenError(f"{path}: there is no folder {path.parent}")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            made = Path(folder) / "new"
            fill(made)
            return _link(made, path)
    except lmdb.Error as error:
        if failures.is_no_room(error, path.parent):
            raise failures.disk_full(path) from error
        raise failures.opening(error, path) from error
    except OSError as error:
        raise failures.opening(error, path) from error


def _link(made: Path, path: Path) -> bool:
    try:
        os.link(made, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links: not atomic against another creator
        if path.exists():
            return False
        made.rename(path)
    with contextlib.suppress(OSError):  # some file systems cannot sync folders
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return True


def _version() -> str:
    try:
        return importlib.metadata.version("simindex")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
