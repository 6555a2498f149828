"""The searches as the upper floors call them: one query or many, on any table."""

from typing import Any

from simindex.errors import QueryError
from simindex.index import ranking
from simindex.index.executor import find
from simindex.index.query import Queries, make_queries, make_query
from simindex.index.request import Search, build_search, split_value
from simindex.index.results import BatchHits, Hits
from simindex.index.schema import Schema


def parse(schema: Schema, arguments: dict[str, Any]) -> tuple[Search, Any]:
    """Return (search, value) of a search call's keyword arguments. Raises QueryError, SchemaError."""
    name, value, options = split_value(schema, arguments)
    return build_search(schema, name, options), value


def search_value(table: Any, schema: Schema, search: Search, value: Any) -> Hits:
    """Return the hits of one value, the long way. Raises FeatureError."""
    return search_one(table, schema, search, make_query(search.field, value))


def search_one(table: Any, schema: Schema, search: Search, query: Queries) -> Hits:
    """Return the hits of one ready query."""
    found = find(table, schema.numbers[search.name], search, query)
    return ranking.single(table, schema, search, found)


def search_batch(table: Any, schema: Schema, search: Search, queries: Queries) -> BatchHits:
    """Return the hits of many ready queries, as arrays."""
    found = find(table, schema.numbers[search.name], search, queries)
    return ranking.batch(table, schema, search, found, len(queries))


def queries_of(search: Search, values: Any) -> Queries:
    """Return many queries made ready. Raises FeatureError, QueryError for a single text."""
    if isinstance(values, str | bytes) or values is None:
        raise QueryError(f"search_many takes many values of field {search.name!r}: use search for one")
    return make_queries(search.field, values)
