"""The files that this process has open, one entry per file, and what a fork does to them.

LMDB forbids opening a file twice in a process, under any name: its locks belong to (process, file). So a
file is known by (device, inode), a second open shares the first one's handle, and the last close closes it.

A forked child inherits handles that are not its own: LMDB's reader slots and locks in them carry the
parent's pid. The child never uses, closes or finalises them. They are made immortal (one reference is never
given back), and the next transaction opens the file anew.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lmdb import _envid

if TYPE_CHECKING:
    from simindex.store.openfile import OpenFile

FileKey = tuple[int, int]

_files: dict[FileKey, "OpenFile"] = {}
_lock = threading.RLock()
_inherited: set[Any] = set()
generation = 0  # how many forks lie between the first process and this one


@contextlib.contextmanager
def locked() -> Iterator[dict[FileKey, "OpenFile"]]:
    """Hold the registry: opening and closing files is one at a time in a process."""
    with _lock:
        yield _files


def file_key(path: str | os.PathLike[str] | int) -> FileKey:
    """Return what identifies a file whatever its name: (device, inode)."""
    seen = os.stat(path)
    return seen.st_dev, seen.st_ino


def leak(handle: object) -> None:
    """Make an object immortal, so that its finaliser never runs: for handles that belong to the parent
    process.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))


def _after_fork_in_child() -> None:
    global _lock, generation
    _lock = threading.RLock()  # a thread that does not exist here may hold the old one
    generation += 1
    for file in _files.values():
        _inherited.update(_lmdb_keys(os.fspath(file.path), False))
        file.inherit()


_lmdb_keys: Callable[[Any, bool], tuple[Any, ...]] = _envid.env_keys


def _keys_of_own_files(path: Any, subdir: bool) -> tuple[Any, ...]:
    # py-lmdb refuses a file that an inherited, never-closed handle has open. Opening it anew is right in a
    # child, and the registry above still sees to it that no file is open twice in one process.
    return tuple((generation, key) if key in _inherited else key for key in _lmdb_keys(path, subdir))


_envid.env_keys = _keys_of_own_files
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
