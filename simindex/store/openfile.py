"""The one LMDB environment of a file in this process: its transactions, its map, its end.

Two rules make addresses safe. Whoever replaces or unmaps the map (growth, another process's growth, close)
first has the file alone: no transaction of this process is live and none begins. And the epoch changes
whenever that happened.
"""

import contextlib
import errno
import itertools
import os
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import lmdb

from simindex.errors import Closed, DiskFull, Locked, MapFull, OpenError, Poisoned, ReadOnly, SimindexError
from simindex.store import registry
from simindex.store.locks import WriteLock
from simindex.store.transactions import RawRead, RawWrite, _Raw

DATABASES = ("meta", "records", "live", "signatures", "postings", "originals")
MAX_READERS = 4096
ENGINE_VERSION = 0  # py-lmdb's lib_version: the 0.9 engine
_MAX_DATABASES = 16
_SMALLEST_MAP = 1 << 26

_epochs = itertools.count(1)


class OpenFile:
    """An open store file, shared by all openers of this process.

    users: how many openers; mode: "r" or "w"; path: absolute; key: (device, inode).
    """

    def __init__(
        self, path: Path, mode: str, durability: str, max_bytes: int | None, map_bytes: int, *,
        sync: bool = True, lock: bool = True, timeout: float = 5.0,
    ) -> None:  # fmt: skip
        self.path = path
        self.mode = mode
        self.durability = durability
        self.max_bytes = max_bytes
        self.timeout = timeout
        self.users = 0
        self.epoch = 0
        self.databases: dict[str, Any] = {}
        self.cache: dict[Any, Any] = {}
        self._map_bytes = map_bytes
        self._sync = sync
        self._lock = lock
        self._poison: str | None = None
        self._reset()
        self._open()

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        self._alone = False
        self._active: dict[int, weakref.ref[_Raw]] = {}
        self._threads: dict[int, int] = {}
        self._env: Any = None
        self._write_lock: WriteLock | None = None
        self.generation = registry.generation

    # Opening and closing ------------------------------------------------------------------------------------

    def _open(self) -> None:
        size = self._map_bytes
        while True:
            try:
                self._env = lmdb.Environment(
                    os.fspath(self.path), map_size=size, subdir=False, readonly=self.mode == "r",
                    create=False, metasync=self.durability == "full",
                    sync=self._sync, mode=0o666, lock=self._lock,
                    max_readers=MAX_READERS, max_dbs=_MAX_DATABASES, max_spare_txns=1,
                    lib_version=ENGINE_VERSION,
                )  # fmt: skip
                break
            except (lmdb.Error, MemoryError) as error:
                no_memory = isinstance(error, MemoryError | lmdb.MemoryError) or error.code == errno.ENOMEM
                if no_memory and size > _SMALLEST_MAP:
                    size //= 4
                    continue
                raise OpenError(f"{self.path}: {error}") from error
        try:
            self.map_bytes = self._env.info()["map_size"]
            self.key = registry.file_key(self.path)
            if self._lock:
                self._env.reader_check()
            if self.mode != "r":
                self._write_lock = WriteLock(self.path.with_name(self.path.name + "-lock"))
                self._write_lock.acquire(self.timeout)
                try:
                    self._open_databases()
                finally:
                    self._write_lock.release()
            else:
                self._open_databases()
        except BaseException:
            self._env.close()
            self._env = None
            if self._write_lock is not None:
                self._write_lock.close()
                self._write_lock = None
            raise
        self.epoch = next(_epochs)
        self.cache.clear()

    def _open_databases(self) -> None:
        # Outside a transaction py-lmdb takes a write transaction for this, so the write lock comes first.
        for name in DATABASES:
            self.databases[name] = self._env.open_db(name.encode(), create=False)

    def inherit(self) -> None:
        """In a forked child: let go of everything that belongs to the parent, without touching it."""
        if self._env is not None:
            registry.leak(self._env)
        for handle in self.databases.values():
            registry.leak(handle)
        for reference in self._active.values():
            raw = reference()
            if raw is not None and raw.is_open:
                raw.disown()
        if self._write_lock is not None:
            registry.leak(self._write_lock)
        generation = self.generation
        self._reset()
        self.generation = generation

    def _reopen_in_child(self) -> None:
        with registry.locked():
            if self.generation == registry.generation:
                return
            if self.users == 0:
                raise Closed(f"{self.path} is closed")
            try:
                key = registry.file_key(self.path)
            except OSError as error:
                raise OpenError(
                    f"{self.path}: gone since this process was forked: {error.strerror}"
                ) from error
            if key != self.key:
                raise OpenError(f"{self.path}: replaced by another file since this process was forked")
            self._poison = None
            self._open()
            self.generation = registry.generation

    def close(self, timeout: float) -> None:
        """Close for good. This thread's own transactions end at once; those of other threads are waited
        for.
        """
        if self.generation != registry.generation:
            return
        me = threading.get_ident()
        for reference in list(self._active.values()):
            raw = reference()
            if raw is not None and raw.thread == me and raw.is_open:
                self.end(raw)
        with self.alone(timeout, "close"):
            env, self._env = self._env, None
            if env is not None:
                env.close()
            if self._write_lock is not None:
                self._write_lock.close()
                self._write_lock = None

    # Transactions -------------------------------------------------------------------------------------------

    def begin_read(self) -> RawRead:
        """Begin a snapshot; about a microsecond."""
        if self.generation != registry.generation:
            self._reopen_in_child()
        me = threading.get_ident()
        for _ in range(8):
            try:
                with self._mutex:
                    self._admit(me)
                    raw = RawRead(self, self._env.begin(buffers=True), me)
                    self._active[id(raw)] = weakref.ref(raw)
                    self._threads[me] = self._threads.get(me, 0) + 1
                return raw
            except lmdb.MapResizedError:
                self._adopt_map()
            except lmdb.ReadersFullError as error:
                if self._env.reader_check() == 0:
                    raise OpenError(f"{self.path}: all {MAX_READERS} reader slots are in use") from error
        raise OpenError(f"{self.path}: the store grows faster than this process can follow")

    def begin_write(self, timeout: float | None = None) -> RawWrite:
        """Begin the write transaction; waits up to `timeout` seconds for other writers, then raises
        Locked.
        """
        if self.generation != registry.generation:
            self._reopen_in_child()
        lock = self._write_lock
        if lock is None:
            if self._env is None:
                raise Closed(f"{self.path} is closed")
            raise ReadOnly(f'{self.path} was opened with mode="r"')
        lock.acquire(self.timeout if timeout is None else timeout)
        try:
            if self._poison:
                raise Poisoned(self._poison)
            me = threading.get_ident()
            for _ in range(8):
                with self._mutex:
                    self._admit(me)
                    self._threads[me] = self._threads.get(me, 0) + 1
                try:
                    raw = RawWrite(self, self._env.begin(write=True, buffers=True), me)
                    with self._mutex:
                        self._active[id(raw)] = weakref.ref(raw)
                    return raw
                except lmdb.MapResizedError:
                    self._leave(me)
                    self._adopt_map()
                except BaseException as error:
                    self._leave(me)
                    self.explain(error)
                    raise
            raise OpenError(f"{self.path}: the store grows faster than this process can follow")
        except BaseException:
            lock.release()
            raise

    def end(self, raw: _Raw) -> None:
        """Abort a transaction, read or write."""
        if raw.generation != registry.generation:
            return
        txn, raw._txn = raw._txn, None
        try:
            txn.abort()
        finally:
            self._forget(raw)

    def commit(self, raw: RawWrite) -> None:
        """Commit a write transaction; on failure nothing of it is stored."""
        txn, raw._txn = raw._txn, None
        try:
            txn.commit()
        except lmdb.Error as error:
            with contextlib.suppress(lmdb.Error):
                txn.abort()
            self.explain(error, committing=True)
            raise
        finally:
            self._forget(raw)

    def _admit(self, me: int) -> None:
        # A thread that is inside already may go deeper, or it would wait for itself.
        while self._alone and not self._threads.get(me):
            self._changed.wait()
        if self._env is None:
            raise Closed(f"{self.path} is closed")

    def _leave(self, me: int) -> None:
        with self._mutex:
            self._count_out(me)

    def _count_out(self, me: int) -> None:
        left = self._threads[me] - 1
        if left:
            self._threads[me] = left
        else:
            del self._threads[me]
        if self._alone:
            self._changed.notify_all()

    def _forget(self, raw: _Raw) -> None:
        with self._mutex:
            self._active.pop(id(raw), None)
            self._count_out(raw.thread)
        if isinstance(raw, RawWrite) and self._write_lock is not None:
            self._write_lock.release()

    @contextlib.contextmanager
    def alone(self, timeout: float, why: str) -> Iterator[None]:
        """Have the file alone: no transaction of this process is live inside the block, and none begins."""
        deadline = time.monotonic() + timeout
        with self._mutex:
            while self._alone:
                if not self._changed.wait(max(deadline - time.monotonic(), 0)):
                    raise Locked(f"{self.path}: cannot {why}: another thread is at it for {timeout:g} s")
            if self._threads.get(threading.get_ident()):
                raise Locked(
                    f"{self.path}: cannot {why} inside this thread's own open transaction; end it first"
                )
            self._alone = True
            while self._threads:
                left = deadline - time.monotonic()
                if (left <= 0 or not self._changed.wait(left)) and self._threads:
                    count = sum(self._threads.values())
                    self._alone = False
                    self._changed.notify_all()
                    raise Locked(f"{self.path}: cannot {why}: {count} transactions of other threads are open")
        try:
            yield
        finally:
            with self._mutex:
                self._alone = False
                self._changed.notify_all()

    # The map ------------------------------------------------------------------------------------------------

    def _adopt_map(self) -> None:
        with self.alone(self.timeout, "follow the store's growth"):
            if self._env is None:
                return
            used = (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]
            self._set_map(max(self.map_bytes, 2 * used))

    def grow(self, map_bytes: int) -> None:
        """Enlarge the map. The caller holds the write lock and no transaction."""
        with self.alone(self.timeout, "enlarge the map"):
            self._set_map(map_bytes)

    def _set_map(self, size: int) -> None:
        self._env.set_mapsize(size)
        self.map_bytes = self._env.info()["map_size"]
        self._map_bytes = max(self._map_bytes, self.map_bytes)
        self.epoch = next(_epochs)
        self.cache.clear()

    # Errors -------------------------------------------------------------------------------------------------

    def explain(self, error: BaseException, committing: bool = False) -> None:
        """Raise what an error of LMDB means here, or return if it is none of LMDB's."""
        if isinstance(error, SimindexError) or not isinstance(error, lmdb.Error):
            return
        self._explain(error, committing)

    def _explain(self, error: Any, committing: bool) -> NoReturn:
        if isinstance(error, lmdb.MapFullError):
            raise MapFull(f"{self.path}: the memory map is full") from error
        if getattr(error, "code", 0) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFull(f"{self.path}: {error}") from error
        if committing or isinstance(error, lmdb.PanicError):
            self._poison = f"{self.path}: a commit failed ({error}): close every handle of it and open again"
            raise Poisoned(self._poison) from error
        raise error
