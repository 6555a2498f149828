"""A collection of an open database: calls see the newest commit, writes are their own transactions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from simindex.api.writing import WriteVerbs
from simindex.errors import MapFull
from simindex.index.schema import Schema

if TYPE_CHECKING:
    from simindex.api.database import Database

T = TypeVar("T")
_TRIES = 4  # a transaction that outgrew the map is repeated in a larger one


class Collection(WriteVerbs):
    """Items under keys, with similarity fields. From db["name"] or db.create_collection; lives as long as its
    database.
    """

    def __init__(self, database: "Database", number: int, schema: Schema) -> None:
        super().__init__(schema)
        self._database = database
        self._number = number

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._database._store.read() as snapshot:
            yield self._database._table(snapshot, self._number, self._schema)

    def _write(self, action: Callable[[Any], T]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                with self._database._begin() as transaction:
                    return action(self._database._table(transaction, self._number, self._schema))
            except MapFull:
                if not left:
                    raise
        raise AssertionError("the loop returns or raises")
