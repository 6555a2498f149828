"""A collection of an open database: calls see the newest commit, writes are their own transactions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from simindex.api.writing import WriteVerbs
from simindex.errors import MapFull
from simindex.index import searching
from simindex.index.results import Hits
from simindex.index.schema import Schema
from simindex.index.single import Finders, one_query, read_once

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
        self._finders = Finders(schema)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._database._store.read() as snapshot:
            yield self._database._table(snapshot, self._number, self._schema)

    def search(self, **arguments: Any) -> Hits:
        search, value = searching.parse(self._schema, arguments)
        value = read_once(value)
        query = None if value is None else one_query(search.field, value)
        with self._database._store.read() as snapshot:
            table = self._database._table(snapshot, self._number, self._schema)
            if query is not None:
                hits = self._finders.search(table, search, query)
                if hits is not None:
                    return hits
            return searching.search_value(table, self._schema, search, value)

    search.__doc__ = WriteVerbs.search.__doc__

    def _write(self, action: Callable[[Any], T]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                with self._database._begin() as transaction:
                    return action(self._database._table(transaction, self._number, self._schema))
            except MapFull:
                if not left:
                    raise
        raise AssertionError("the loop returns or raises")
