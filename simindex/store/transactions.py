"""Raw transactions: an lmdb transaction, its id, and the promise that its file stays open and mapped
meanwhile.

Everything read through one (memoryviews, addresses) is valid until it ends, not a moment longer, and nothing
warns of a late use: after the end the bytes are silently others. Values never leave `store` uncopied.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from simindex.errors import Closed
from simindex.store import registry, residency

if TYPE_CHECKING:
    from simindex.store.openfile import OpenFile


class _Raw:
    """What read and write transactions share."""

    __slots__ = ("__weakref__", "_file", "_txn", "epoch", "generation", "id", "thread")

    id: int
    epoch: int

    def __init__(self, file: "OpenFile", txn: Any, thread: int) -> None:
        self._file = file
        self._txn = txn
        self.id = txn.id()
        self.epoch = file.epoch
        self.generation = registry.generation
        self.thread = thread

    @property
    def txn(self) -> Any:
        """The lmdb transaction (buffers=True: keys and values are memoryviews). Raises Closed after the
        end.
        """
        if self._txn is None:
            raise self._ended()
        return self._txn

    def db(self, kind: str) -> Any:
        """Return the lmdb handle of a database ("meta", "records", ...), good for this transaction."""
        return self._file.databases[kind]

    @property
    def cache(self) -> dict[Any, Any]:
        """What the process keeps between transactions of this file; emptied when the epoch changes."""
        return self._file.cache

    def read_ahead(self) -> None:
        """Have the system read the whole file into its cache: most of it is about to be read."""
        residency.read_ahead(self._file.path)

    @property
    def is_open(self) -> bool:
        """Whether the transaction has not ended."""
        return self._txn is not None

    def disown(self) -> None:
        """In a forked child: forget the parent's transaction without touching it."""
        registry.leak(self._txn)
        self._txn = None

    def _ended(self) -> Closed:
        if self.generation != registry.generation:
            return Closed("the transaction belongs to the parent process; begin a new one in this process")
        return Closed("the transaction has ended")


class RawRead(_Raw):
    """A snapshot. `id` is the transaction that wrote what it sees; equal ids and epochs see the same bytes
    at the same addresses. Ends with `end()` or its `with` block, from any thread."""

    __slots__ = ()

    def end(self) -> None:
        """End the snapshot; does nothing if it has ended."""
        if self._txn is not None:
            self._file.end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def __del__(self) -> None:
        if getattr(self, "_txn", None) is not None:
            self._file.drop(self)


class RawWrite(_Raw):
    """The one write transaction of a store. Ends with `commit()` or `abort()`; its `with` block commits, or
    aborts if an exception leaves it. Belongs to the thread that began it."""

    __slots__ = ()

    def reserve(self, size: int) -> None:
        """Raise QuotaReached or DiskFull if `size` bytes more have no room, before anything is written.

        MapFull: abort and repeat the transaction. Cost: about 10 microseconds.
        """
        if self._txn is None:
            raise self._ended()
        self._file.reserve(self, size)

    def commit(self) -> None:
        """Store everything, or nothing: raises DiskFull, QuotaReached, MapFull or Poisoned with nothing
        stored.
        """
        if self._txn is None:
            raise self._ended()
        self._file.commit(self)

    def abort(self) -> None:
        """Forget everything; does nothing if the transaction has ended."""
        if self._txn is not None:
            self._file.end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is None:
            if self._txn is not None:
                self.commit()
            return
        self.abort()
        if error is not None:
            meaning = self._file.explain(error)
            if meaning is not error:
                raise meaning from error

    def __del__(self) -> None:
        if getattr(self, "_txn", None) is not None:
            self._file.drop(self)
