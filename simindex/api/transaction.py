"""Views of a database that stand still: a snapshot to read, a transaction to read and write."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from simindex.api.reading import ReadVerbs
from simindex.api.writing import WriteVerbs
from simindex.errors import Closed, SimindexError
from simindex.index.schema import Schema
from simindex.index.single import Finders

if TYPE_CHECKING:
    from simindex.api.database import Database

T = TypeVar("T")


class _Scope:
    """What snapshots and transactions share: collections by name, one thread, an end."""

    what = "snapshot"

    def __init__(self, database: "Database") -> None:
        self._database = database
        self._thread = threading.get_ident()
        self._inner: Any = None

    def _open(self) -> Any:
        if self._inner is None:
            raise Closed(f"this {self.what} has ended")
        if threading.get_ident() != self._thread:
            raise SimindexError(
                f"this {self.what} belongs to the thread that began it: begin another one here"
            )
        return self._inner

    def collections(self) -> list[str]:
        """Return the names of all collections, sorted."""
        return sorted(schema.name for _, schema in self._database._schemas(self._open()))

    def _table(self, number: int, schema: Schema) -> Any:
        return self._database._table(self._open(), number, schema)


class Snapshot(_Scope):
    """The database as of one moment, for the thread that took it: snapshot["news"].search(...).

    Close it when done (or use `with`): while it is open, the space of later deletes cannot be used again.
    """

    def __init__(self, database: "Database") -> None:
        super().__init__(database)
        self._inner = database._store.read()

    def __getitem__(self, name: str) -> "SnapshotCollection":
        number, schema = self._database._find(self._open(), name)
        return SnapshotCollection(self, number, schema)

    @property
    def id(self) -> int:
        """The number of the newest commit that this snapshot sees."""
        return int(self._open().id)

    def close(self) -> None:
        """End the snapshot. Closing twice is fine."""
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.close()

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SnapshotCollection(ReadVerbs):
    """A collection as its snapshot sees it, read-only."""

    def __init__(self, snapshot: Snapshot, number: int, schema: Schema) -> None:
        super().__init__(schema, Finders(schema))
        self._snapshot = snapshot
        self._number = number

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        yield self._snapshot._table(self._number, self._schema)


class Transaction(_Scope):
    """Several writes, all or nothing: with db.write() as tx: tx["news"].put(...). Its reads see its own
    writes.

    Leaving the block by an exception writes nothing. Made by Database.write; belongs to one thread.
    """

    what = "transaction"

    def __init__(self, database: "Database", timeout: float | None) -> None:
        super().__init__(database)
        self._timeout = timeout
        self._manager: Any = None

    def __enter__(self) -> Self:
        if self._inner is not None:
            raise SimindexError("this transaction is open already")
        self._thread = threading.get_ident()
        self._manager = self._database._begin(self._timeout)
        self._inner = self._manager.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open()
        self._inner = None
        self._manager.__exit__(kind, error, trace)

    def __getitem__(self, name: str) -> "TransactionCollection":
        number, schema = self._database._find(self._open(), name)
        return TransactionCollection(self, number, schema)


class TransactionCollection(WriteVerbs):
    """A collection inside a transaction."""

    def __init__(self, transaction: Transaction, number: int, schema: Schema) -> None:
        super().__init__(schema)
        self._transaction = transaction
        self._number = number

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        yield self._transaction._table(self._number, self._schema)

    def _write(self, action: Callable[[Any], T]) -> T:
        return action(self._transaction._table(self._number, self._schema))
