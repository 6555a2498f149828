"""Putting a new file in a store's place, under all handles of this process and none of any other.

LMDB's lock file stays (its locks belong to the path), the data file is replaced by rename. That is safe only
while no other process has the store open: it would go on reading and writing the old, nameless file. LMDB's
openers hold a shared lock on byte 0 of the lock file, so an exclusive one there proves that there are none,
and keeps new ones waiting until the rename is done.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import lmdb

from simindex.errors import Locked, ReadOnly
from simindex.store import registry, serial
from simindex.store.openfile import ENGINE_VERSION, OpenFile


@contextmanager
def writers_waiting(file: OpenFile, timeout: float) -> Iterator[None]:
    """Hold the write lock without a transaction: nobody writes inside the block, reading goes on."""
    lock = file.write_lock
    if lock is None:
        raise ReadOnly(f'{file.path} was opened with mode="r"')
    with file.begin_write(timeout):
        pass  # reopens for writing where that is still to be done, and reports a poisoned handle
    serial.enter(file._serial)
    try:
        lock.acquire(timeout)
        try:
            yield
        finally:
            lock.release()
    finally:
        serial.leave(file._serial)


def replace(file: OpenFile, new: Path, last_txn: int, timeout: float) -> None:
    """Rename `new` to the store's path and go on with it. Inside `writers_waiting`, without a transaction.

    last_txn: the newest transaction that `new` holds. Raises Locked if another process has the store open, or
    a thread of this one a transaction, or someone wrote after last_txn; the old file stays in place then.
    """
    lock = file.write_lock
    assert lock is not None
    with file.gate.alone(timeout, "replace the file"), registry.locked() as files:
        old_key = file.key
        file.env.close()  # this drops all our locks on the lock file, as POSIX has it
        file.env = None
        try:
            fd = lock._file
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            except OSError as error:
                raise Locked(
                    f"{file.path}: another process has the store open; it cannot be replaced meanwhile"
                ) from error
            try:
                if _last_transaction(file.path) != last_txn:
                    raise Locked(f"{file.path}: another process wrote meanwhile; try again")
                os.replace(new, file.path)
                _sync_folder(file.path.parent)
            finally:
                fcntl.lockf(fd, fcntl.LOCK_UN, 1, 0)
        finally:
            file._open(timeout)
            if files.get(old_key) is file and old_key != file.key:
                del files[old_key]
                files[file.key] = file


def _last_transaction(path: Path) -> int:
    env: Any = lmdb.Environment(
        os.fspath(path), subdir=False, readonly=True, lock=False, create=False, lib_version=ENGINE_VERSION
    )
    try:
        return int(env.info()["last_txnid"])
    finally:
        env.close()


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot; the rename is then as durable as they make it
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
