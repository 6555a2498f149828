"""What an error of LMDB means to a user."""

import errno
from pathlib import Path
from typing import Any

import lmdb

from simindex.errors import CorruptStore, DiskFull, OpenError, Poisoned, SimindexError
from simindex.store import filesystem

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_no_room(error: Any, path: Path) -> bool:
    """Whether an error says that the disk is full. LMDB reports a write that was cut short as EIO."""
    code = getattr(error, "code", 0)
    return code in _NO_ROOM or (code == errno.EIO and filesystem.is_full(path))


def opening(error: BaseException, path: Path) -> SimindexError:
    """Return the error for a file that LMDB did not open."""
    if isinstance(error, OSError):
        if error.errno in _NO_ROOM:
            return disk_full(path)
        return OpenError(f"{path}: cannot be opened: {error.strerror}")
    code = getattr(error, "code", 0)
    if is_no_room(error, path):
        return disk_full(path)
    if code == errno.EMFILE:
        return OpenError(f"{path}: this process has too many open files (ulimit -n)")
    if code == errno.ENOMEM or isinstance(error, MemoryError | lmdb.MemoryError):
        return OpenError(f"{path}: this process has too little address space to map the file (ulimit -v)")
    if isinstance(error, lmdb.ReadersFullError):
        return OpenError(f"{path}: all reader slots of the store are in use by other processes")
    if "already open in this process" in str(error):
        return OpenError(
            f"{path}: its lock file belongs to a store that this process has open under another name "
            "(moved or replaced while open?); close that one first"
        )
    return OpenError(f"{path}: LMDB cannot open it: {error}")


def writing(error: BaseException, path: Path) -> BaseException:
    """Return the error for a failed put, delete or begin; `error` itself if it is none of LMDB's."""
    if isinstance(error, SimindexError) or not isinstance(error, lmdb.Error):
        return error
    if is_no_room(error, path):
        return disk_full(path)
    if isinstance(error, lmdb.PanicError):
        return Poisoned(poison(error, path))
    if isinstance(error, lmdb.CorruptedError | lmdb.PageNotFoundError):
        return CorruptStore(f"{path}: the file's B-trees are damaged: {error}; restore it from a backup")
    return error


def disk_full(path: Path, lacking: int = 0) -> DiskFull:
    """Return the error for a write that finds no room on the file system."""
    more = f" for {lacking} more bytes" if lacking else ""
    return DiskFull(
        errno.ENOSPC,
        f"no room on the file system{more}; nothing was stored, "
        "the store stays readable and deletes still work",
        str(path),
    )


def poison(error: BaseException, path: Path) -> str:
    """Return what a poisoned handle answers to every later write."""
    return (
        f"{path}: a commit failed in doubt ({error}); nothing more is written through this handle: "
        "close every handle of this store and open it again"
    )
