"""A collection of an open database: calls see the newest commit, writes are their own transactions."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from simindex.api.writing import WriteVerbs
from simindex.errors import MapFull
from simindex.index.schema import Schema
from simindex.index.single import Finders

if TYPE_CHECKING:
    from simindex.api.database import Database

T = TypeVar("T")
_TRIES = 4  # a transaction that outgrew the map is repeated in a larger one


class _Reading:
    """A snapshot for one call: its table."""

    __slots__ = ("_database", "_number", "_schema", "_snapshot")

    def __init__(self, database: "Database", number: int, schema: Schema) -> None:
        self._database = database
        self._number = number
        self._schema = schema

    def __enter__(self) -> Any:
        self._snapshot = self._database._store.read()
        try:
            return self._database._table(self._snapshot, self._number, self._schema)
        except BaseException:
            self._snapshot.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._snapshot.close()


class Collection(WriteVerbs):
    """Items under keys, with similarity fields. From db["name"] or db.create_collection; lives as long as its
    database.
    """

    def __init__(self, database: "Database", number: int, schema: Schema) -> None:
        super().__init__(schema, Finders(schema))
        self._database = database
        self._number = number

    def _reading(self) -> "_Reading":
        return _Reading(self._database, self._number, self._schema)

    def _write(self, action: Callable[[Any], T]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                with self._database._begin() as transaction:
                    return action(self._database._table(transaction, self._number, self._schema))
            except MapFull:
                if not left:
                    raise
        raise AssertionError("the loop returns or raises")
