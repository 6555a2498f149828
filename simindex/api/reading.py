"""The verbs that read a collection, wherever its table comes from: the newest commit, a snapshot or a
transaction.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from simindex.errors import shown
from simindex.index import compare, explain, rows, searching
from simindex.index.compare import Comparison
from simindex.index.explain import Explanation
from simindex.index.keys import Key
from simindex.index.request import build_search, split_value
from simindex.index.results import BatchHits, Hits
from simindex.index.schema import Schema
from simindex.index.single import Finders, one_query, read_once


class ReadVerbs(ABC):
    """get, [], in, len, iteration, search, search_many, explain, compare."""

    def __init__(self, schema: Schema, finders: Finders | None = None) -> None:
        self._schema = schema
        self._finders = finders  # None where a transaction's own writes have to be seen

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Any]:
        """Return a context manager that gives the table to read."""

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._schema.name

    @property
    def schema(self) -> Schema:
        """The collection's schema: key type, fields, settings."""
        return self._schema

    def describe(self) -> str:
        """Return the schema in words: each field's settings and its expected recall at and near the
        threshold.
        """
        return self._schema.describe()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {', '.join(self._schema.fields)}>"

    def get(self, key: Key, default: Any = None) -> Any:
        """Return the item's attributes and kept values, a dict ({} when it has none); `default` when it is
        not stored.

        Raises KeyTypeError for a key of another type than the collection's.
        """
        with self._reading() as table:
            found = rows.get(table, self._schema, key)
        return default if found is None else found

    def __getitem__(self, key: Key) -> dict[str, Any]:
        with self._reading() as table:
            found = rows.get(table, self._schema, key)
        if found is None:
            raise KeyError(f"no item has key {shown(key)}")
        return found

    def __contains__(self, key: Key) -> bool:
        with self._reading() as table:
            return rows.row_of(table, self._schema, key) != rows.MISSING

    def __len__(self) -> int:
        with self._reading() as table:
            return int(table.state.live)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Key]:
        """Yield all keys in the order of their last write, as of the moment of the first one."""
        with self._reading() as table:
            yield from rows.iterate_keys(table, self._schema)

    def search(self, **arguments: Any) -> Hits:
        """Return the hits of one query: search(body="...", threshold=0.8, k=10).

        Name exactly one field with the value to look for. threshold: least similarity, 0 to 1 (default: the
        field's, unless k is given). k: the k best (of all items, or of those that reach the threshold).
        exact=True misses nothing. plan="scan" or "buckets" forces a plan. budget: most candidates compared;
        `.truncated` says when it cut. recall: a higher expected recall than the field's. accept: where scores
        are estimates, "likely" (default) takes those that reach the threshold, "possible" also those whose
        95 % interval does.

        Hits are Hit tuples (key, score, low, high, exact, attributes), best first. An empty value matches
        nothing. Below 10,000 items, below the field's threshold and with k alone every item is looked
        at; explain(...) tells which plan it is and why. Raises QueryError, SchemaError, FeatureError.
        """
        search, value = searching.parse(self._schema, arguments)
        value = read_once(value)
        query = None if value is None else one_query(search.field, value)
        with self._reading() as table:
            if query is not None and self._finders is not None:
                hits = self._finders.search(table, search, query)
                if hits is not None:
                    return hits
            return searching.search_value(table, self._schema, search, value)

    def search_many(self, **arguments: Any) -> BatchHits:
        """Return the hits of many queries as arrays: search_many(body=[...], threshold=0.8).

        Options as for search, values as for put_many's columns; batch[i] is [(key, score), ...] of query i.
        Much faster than a loop over search; all hits are held in memory.
        """
        search, values = searching.parse(self._schema, arguments)
        queries = searching.queries_of(search, values)
        with self._reading() as table:
            return searching.search_batch(table, self._schema, search, queries)

    def explain(self, **arguments: Any) -> Explanation:
        """Return what a search with these arguments would do, expect and cost; str() of it is for people.

        The value may be left out: explain(field="body", threshold=0.7).
        """
        if "field" in arguments:
            options = dict(arguments)
            name = options.pop("field")
        else:
            name, _, options = split_value(self._schema, arguments)
        search = build_search(self._schema, name, options)
        with self._reading() as table:
            return explain.explain(search, int(table.state.live))

    def compare(self, a: Any, b: Any, field: str | None = None) -> Comparison:
        """Compare two items by one field, to see why they are linked or not: compare("a1", "a2").

        Returns .score (true Jaccard), .shared, .features_a and .features_b (numbers of shingles), .estimate
        with .low and .high, .shared_bands (buckets that both are in: 0 means a bucket search misses the pair)
        and .chance (that such a pair shares one); str() of it is for people. a, b: the key of a stored item,
        or a value as a mapping {field: value}. field: needed if there are several. Raises KeyError for a key
        that is not stored.
        """
        with self._reading() as table:
            return compare.compare(table, self._schema, a, b, field)
