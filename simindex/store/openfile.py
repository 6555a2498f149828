"""The one LMDB environment of a file in this process: its transactions, its map, its end.

Two rules make addresses safe. Whoever replaces or unmaps the map (growth, another process's growth, a
reopening, close) first has the file alone: no transaction of this process is live and none begins. And the
epoch changes when it did.

A file opened for writing while another process writes is mapped read-only at first and reopened at the first
write: py-lmdb needs a write transaction to open the databases of a writable map, and opening must not wait
for a writer.
"""

import collections
import contextlib
import itertools
import os
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import lmdb

from simindex.errors import Closed, Locked, MapFull, OpenError, Poisoned, QuotaReached, ReadOnly
from simindex.store import failures, filesystem, registry, serial
from simindex.store.gate import Gate
from simindex.store.layout import DATABASES
from simindex.store.locks import MAX_READERS, WriteLock, prepare
from simindex.store.transactions import RawRead, RawWrite, _Raw

ENGINE_VERSION = 0  # py-lmdb's lib_version: the 0.9 engine
_SMALLEST_MAP = 1 << 26  # bytes: below this, a lack of address space is an error
_MARGIN = 1 << 24  # bytes of map that a transaction of unknown size should find
_DELETES = 1 << 18  # bytes that deletes may need in a store that is larger than its quota
_GLANCE = 0.02  # seconds to wait for the write lock when opening, before mapping read-only
_TRIES = 8

_epochs = itertools.count(1)


def lock_path(path: Path) -> Path:
    """Return the path of a store's lock file, which LMDB names."""
    return path.with_name(path.name + "-lock")


class OpenFile:
    """An open store file, shared by all openers of this process.

    users: how many openers; path: absolute; key: (device, inode); mode: "w" once an opener asked for it,
    else "r". cache: for whoever keeps something between transactions; emptied when the epoch changes.
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
        self.map_bytes = map_bytes
        self.page_bytes = 0
        self.databases: dict[str, Any] = {}
        self.cache: dict[Any, Any] = {}
        self._sync = sync
        self._lock = lock
        self._floor = 0  # bytes of map below which a quota does not push
        self._wanted = 0  # bytes of map that a transaction lacked
        self._closed: str | None = None
        self._poison: str | None = None
        self._reset()
        self._open(_GLANCE)
        self._drop_file_lock()

    def _reset(self) -> None:
        self.gate = Gate()
        self.active: dict[int, weakref.ref[_Raw]] = {}
        self.env: Any = None
        self.writable = False
        self.write_lock: WriteLock | None = None
        self.generation = registry.generation
        self._dropped: collections.deque[tuple[Any, int, bool]] = collections.deque()
        self._serial = threading.RLock()

    # Opening and closing ------------------------------------------------------------------------------------

    def _open(self, wait: float) -> None:
        """Map the file. Afterwards, if `writable`, the file half of the write lock is held."""
        for _ in range(_TRIES):
            try:
                self._try_open(wait)
            except lmdb.MapResizedError as error:  # it grew since its size was looked at
                self._shut(lock=False)  # this thread may hold the lock
                self.map_bytes = max(self.map_bytes, 2 * self.path.stat().st_size)
                last: BaseException = error
            except BaseException as error:
                self._shut()
                if isinstance(error, lmdb.Error | MemoryError | OSError):
                    raise failures.opening(error, self.path) from error
                raise
            else:
                self._new_epoch()
                return
        raise failures.opening(last, self.path) from last

    def _try_open(self, wait: float) -> None:
        self.writable = False
        self.env = self._map(readonly=self.mode == "r")
        if self.mode == "w":
            if self.write_lock is None:
                self.write_lock = WriteLock(lock_path(self.path))
            self.writable = self.write_lock.take_file(wait)
            if not self.writable:
                self._shut(lock=False)
                self.env = self._map(readonly=True)
        for name in DATABASES:
            self.databases[name] = self.env.open_db(name.encode(), create=False)
        if self._lock:
            self.env.reader_check()
        self.key = registry.file_key(self.path)
        self.page_bytes = self.env.stat()["psize"]

    def _shut(self, lock: bool = True) -> None:
        if self.env is not None:
            self.env.close()
            self.env = None
        if lock and self.write_lock is not None:
            self.write_lock.close()
            self.write_lock = None

    def _map(self, readonly: bool) -> Any:
        size = self.map_bytes
        if self.max_bytes is not None:
            self._floor = self.path.stat().st_size + _DELETES
            size = min(size, self._most())
        if self._lock:
            prepare(lock_path(self.path))
        while True:
            try:
                return lmdb.Environment(
                    os.fspath(self.path), map_size=size, subdir=False, readonly=readonly, create=False,
                    metasync=self.durability == "full", sync=self._sync, mode=0o666, lock=self._lock,
                    max_readers=MAX_READERS, max_dbs=len(DATABASES), max_spare_txns=1,
                    lib_version=ENGINE_VERSION, readahead=False,
                )  # fmt: skip
            except (lmdb.Error, MemoryError):
                if size <= _SMALLEST_MAP or filesystem.address_space(2 * size):
                    raise
                while size > _SMALLEST_MAP and not filesystem.address_space(2 * size):
                    size //= 2  # at most half of what there is: others need address space too

    def allow_writes(self, durability: str, max_bytes: int | None, timeout: float) -> None:
        """Let a file that was opened for reading alone be written: the first write reopens it."""
        self.write_lock = WriteLock(lock_path(self.path))
        self.mode, self.durability, self.max_bytes, self.timeout = "w", durability, max_bytes, timeout

    def _drop_file_lock(self) -> None:
        if self.writable and self.write_lock is not None:
            self.write_lock.drop_file()

    def _make_writable(self, deadline: float) -> None:
        """Reopen for writing; this thread holds the write lock."""
        lock = self.write_lock
        with self.gate.alone(max(deadline - time.monotonic(), 0), "begin the first write"):
            if lock is not None:
                lock.drop_file()  # closing the environment drops it anyway
            self._shut(lock=False)
            self._lock = True
            try:
                self._open(max(deadline - time.monotonic(), 0))
            except BaseException as error:
                self._closed = f"{self.path} could not be reopened for writing ({error}); open it again"
                raise
        if not self.writable:
            raise Locked(f"{self.path}: another process began to write first; try again")

    def inherit(self) -> None:
        """In a forked child: let go of everything that belongs to the parent, without touching it."""
        for handle in (self.env, self.write_lock, *self.databases.values()):
            if handle is not None:
                registry.leak(handle)
        for reference in self.active.values():
            raw = reference()
            if raw is not None and raw.is_open:
                raw.disown()
        for txn, _, _ in self._dropped:
            registry.leak(txn)
        generation = self.generation
        self._reset()
        self.generation = generation

    def _reopen_in_child(self) -> None:
        with registry.locked():
            if self.generation == registry.generation:
                return
            if self._closed or self.users == 0:
                raise Closed(self._closed or f"{self.path} is closed")
            try:
                key = registry.file_key(self.path)
            except OSError as error:
                raise OpenError(
                    f"{self.path}: gone since this process was forked: {error.strerror}"
                ) from error
            if key != self.key:
                raise OpenError(f"{self.path}: replaced by another file since this process was forked")
            self._poison = None
            self._open(_GLANCE)
            self._drop_file_lock()
            self.generation = registry.generation

    def is_stale(self) -> bool:
        """Whether this entry can no longer be used: its reopening failed."""
        return self._closed is not None

    def release(self, timeout: float) -> None:
        """One opener less; the last one closes the file.

        This thread's own transactions end at once then; those of other threads are waited for, and Locked is
        raised (the file stays open) if they last longer than `timeout` seconds.
        """
        with registry.locked() as files:
            if self.users > 1 or self.generation != registry.generation:
                self.users -= 1
                if self.users == 0:
                    files.pop(self.key, None)
                return
        me = threading.get_ident()
        for reference in list(self.active.values()):
            raw = reference()
            if raw is not None and raw.thread == me and raw.is_open:
                self.end(raw)
        self._sweep()
        deadline = time.monotonic() + timeout
        lock = self.write_lock  # first the lock, then the gate, as a writer takes them
        with contextlib.nullcontext() if lock is None else lock.held(timeout):
            left = max(deadline - time.monotonic(), 0)
            with self.gate.alone(left, "close the store"), registry.locked() as files:
                self.users -= 1
                if self.users == 0:
                    files.pop(self.key, None)
                    self._closed = f"{self.path} is closed"
                    self._shut()
                    self._new_epoch()

    # Transactions -------------------------------------------------------------------------------------------

    def begin_read(self) -> RawRead:
        """Begin a snapshot."""
        if self.generation != registry.generation:
            self._reopen_in_child()
        if self._dropped:
            self._sweep()
        me = threading.get_ident()
        gate = self.gate
        if serial.required:
            serial.enter(self._serial)
        try:
            for _ in range(_TRIES):
                try:
                    with gate.mutex:
                        gate.enter(me)
                        try:
                            raw = RawRead(self, self.env.begin(buffers=True), me)
                        except BaseException:
                            gate.leave(me)
                            raise
                        self.active[id(raw)] = weakref.ref(raw)
                    return raw
                except lmdb.MapResizedError:
                    self._adopt_map()
                except lmdb.ReadersFullError as error:
                    if self.env.reader_check() == 0:
                        raise failures.opening(error, self.path) from error
                except AttributeError as error:
                    if self.env is None:
                        raise Closed(self._closed or f"{self.path} is closed") from error
                    raise
            raise OpenError(f"{self.path}: the store grows faster than this process can follow")
        except BaseException:
            serial.leave(self._serial)
            raise

    def begin_write(self, timeout: float | None = None, room: int = 0) -> RawWrite:
        """Begin the write transaction. room: bytes about to be put, so that the map can grow before it
        begins.
        """
        if self.generation != registry.generation:
            self._reopen_in_child()
        self._sweep()
        lock = self.write_lock
        if lock is None:
            if self.env is None:
                raise Closed(self._closed or f"{self.path} is closed")
            raise ReadOnly(f'{self.path} was opened with mode="r"')
        timeout = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout
        serial.enter(self._serial)
        try:
            lock.acquire(timeout)
        except BaseException:
            serial.leave(self._serial)
            raise
        try:
            if self._poison:
                raise Poisoned(self._poison)
            if not self.writable:
                self._make_writable(deadline)
            self._make_room(room)
            return self._begin_write()
        except BaseException:
            lock.release()
            serial.leave(self._serial)
            raise

    def _begin_write(self) -> RawWrite:
        me = threading.get_ident()
        for _ in range(_TRIES):
            with self.gate.mutex:
                self.gate.enter(me)
            try:
                if self.env is None:
                    raise Closed(self._closed or f"{self.path} is closed")
                raw = RawWrite(self, self.env.begin(write=True, buffers=True), me)
            except BaseException as error:
                with self.gate.mutex:
                    self.gate.leave(me)
                if not isinstance(error, lmdb.MapResizedError):
                    raise self.explain(error) from error
            else:
                with self.gate.mutex:
                    self.active[id(raw)] = weakref.ref(raw)
                return raw
            self._adopt_map()
        raise OpenError(f"{self.path}: the store grows faster than this process can follow")

    def end(self, raw: _Raw) -> None:
        """Abort a transaction, read or write."""
        txn, raw._txn = raw._txn, None
        if raw.generation != registry.generation or txn is None:
            return
        txn.abort()
        self._forget(id(raw), raw.thread, isinstance(raw, RawWrite))

    def commit(self, raw: RawWrite) -> None:
        """Commit a write transaction; on failure nothing of it is stored."""
        txn, raw._txn = raw._txn, None
        try:
            txn.commit()
        except lmdb.Error as error:
            with contextlib.suppress(lmdb.Error):
                txn.abort()
            raise self._commit_failed(error) from error
        else:
            self._put_by()
        finally:
            self._forget(id(raw), raw.thread, True)

    def drop(self, raw: _Raw) -> None:
        """Take a transaction that was forgotten without an end. May run at any point of any thread
        (garbage).
        """
        txn, raw._txn = raw._txn, None
        if raw.generation == registry.generation and txn is not None:
            self.active.pop(id(raw), None)
            self._dropped.append((txn, raw.thread, isinstance(raw, RawWrite)))
            if self.gate.mutex.acquire(blocking=False):  # else whoever holds it, or the next begin, sweeps
                self.gate.mutex.release()
                self._sweep()

    def _sweep(self) -> None:
        while self._dropped:
            try:
                txn, thread, write = self._dropped.popleft()
            except IndexError:
                return
            txn.abort()
            self._forget(0, thread, write)

    def _forget(self, key: int, thread: int, write: bool) -> None:
        with self.gate.mutex:
            self.active.pop(key, None)
            self.gate.leave(thread)
        if write and self.write_lock is not None:
            self.write_lock.release()
        if serial.required:
            serial.leave(self._serial)

    # Room ---------------------------------------------------------------------------------------------------

    def _new_epoch(self) -> None:
        self.epoch = next(_epochs)
        self.cache.clear()
        if self.env is not None:
            self.map_bytes = self.env.info()["map_size"]

    def _most(self) -> int:
        """The largest map under max_bytes: with slack for deletes, and no smaller than what is there already.

        A map of that size is the backstop; `reserve` stops puts before it.
        """
        quota = self.max_bytes or 0
        return max(quota + max(1 << 20, quota // 16), self._floor)

    def _make_room(self, room: int) -> None:
        used = (self.env.info()["last_pgno"] + 1) * self.page_bytes
        margin = max(2 * room, _MARGIN)
        if self.map_bytes >= max(used + margin, self._wanted):
            return
        size = max(2 * self.map_bytes, used + 2 * margin, self._wanted)
        if self.max_bytes is not None:
            size = min(size, self._most())
        if size <= self.map_bytes:
            return
        try:
            self._set_map(size, "enlarge the map")
            self._wanted = 0
        except (Locked, MapFull):
            if self._wanted or self.map_bytes < used + 2 * room:
                raise

    def _adopt_map(self) -> None:
        used = (self.env.info()["last_pgno"] + 1) * self.page_bytes
        size = 2 * used
        if self.max_bytes is not None:
            self._floor = size = used + _DELETES
        self._set_map(max(self.map_bytes, size), "follow the store's growth")

    def _set_map(self, size: int, why: str) -> None:
        if not filesystem.address_space(size):
            raise MapFull(f"{self.path}: cannot {why} to {size} bytes: too little address space (ulimit -v)")
        with self.gate.alone(self.timeout, why):
            if self.env is not None:
                self.env.set_mapsize(size)
                self._new_epoch()

    def _put_by(self) -> None:
        """Keep some bytes of disk beyond the last page: deletes need new pages before they free old ones,
        also on a disk that others have filled up."""
        end = (self.env.info()["last_pgno"] + 1) * self.page_bytes
        reserve = min(max(end // 8, 1 << 16), 1 << 20)
        with contextlib.suppress(OSError):  # moved or deleted meanwhile: not ours to touch
            seen = self.path.stat()
            if (seen.st_dev, seen.st_ino) == self.key and seen.st_size < end + reserve // 2:
                filesystem.allocate(self.path, end + reserve)

    def used_bytes(self, raw: _Raw) -> int:
        """Return the bytes of the pages that a transaction sees in use (without the list of free pages)."""
        stats = [raw.txn.stat(), *(raw.txn.stat(db) for db in self.databases.values())]
        pages = sum(s["branch_pages"] + s["leaf_pages"] + s["overflow_pages"] for s in stats)
        return (2 + int(pages)) * self.page_bytes

    def reserve(self, raw: RawWrite, size: int) -> None:
        """Raise QuotaReached, DiskFull or MapFull if `size` more bytes have no room."""
        used = self.used_bytes(raw)
        if self.max_bytes is not None and used + size > self.max_bytes:
            raise QuotaReached(
                f"{self.path}: {used} bytes in use and {size} to be added, max_bytes is {self.max_bytes}: "
                "delete items, or open it with a larger max_bytes"
            )
        end = (self.env.info()["last_pgno"] + 1) * self.page_bytes
        grows = size - max(end - used, 0)
        if grows > 0 and grows > filesystem.free_bytes(self.path):
            raise failures.disk_full(self.path, grows)
        if end + grows > self.map_bytes:
            raise self._map_full(end + 2 * size)

    # Errors -------------------------------------------------------------------------------------------------

    def explain(self, error: BaseException) -> BaseException:
        """Return what an error of LMDB means here; any other error unchanged."""
        if isinstance(error, lmdb.MapFullError):
            return self._map_full(2 * self.map_bytes)
        found = failures.writing(error, self.path)
        if isinstance(found, Poisoned):
            self._poison = str(found)
        return found

    def _map_full(self, wanted: int) -> QuotaReached | MapFull:
        if self.max_bytes is not None and self.map_bytes >= self._most():
            return QuotaReached(f"{self.path}: reached max_bytes={self.max_bytes}; nothing was stored")
        self._wanted = max(self._wanted, wanted)
        return MapFull(f"{self.path}: the map of {self.map_bytes} bytes is full; repeat the transaction")

    def _commit_failed(self, error: Any) -> BaseException:
        found = self.explain(error)
        try:
            self.env.begin(write=True).abort()  # refused if the meta page is in doubt
        except lmdb.Error as doubt:
            error = doubt
            found = Poisoned(failures.poison(error, self.path))
        if found is error or isinstance(found, Poisoned):
            self._poison = failures.poison(error, self.path)
            return Poisoned(self._poison)
        return found
