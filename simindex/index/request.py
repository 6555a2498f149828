"""One search, checked: which field, which cut, which promises."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simindex.errors import QueryError, SchemaError, shown
from simindex.index.field import Field, check_fraction
from simindex.index.schema import Schema
from simindex.index.spelling import unknown

Accept = Literal["likely", "possible"]
OPTIONS = ("threshold", "k", "exact", "plan", "budget", "recall", "accept", "where", "params", "radius")
SUPPORTED = OPTIONS[:-3]  # the last three are refused by name
_NONE: dict[str, Any] = {}
_KEPT = 512


@dataclass(frozen=True, slots=True)
class Search:
    """name, field: what is searched. threshold: None for k alone. k: None for all that reach the threshold.

    exact: nothing may be missed. plan: "scan", "buckets" or None (the planner chooses). budget: most
    candidates compared for a query, None for no limit. recall: the least expected recall at the threshold
    that will do. accept: with estimates, whether the estimate itself ("likely") or its interval's upper end
    ("possible") must reach the threshold.
    """

    name: str
    field: Field
    threshold: float | None
    k: int | None = None
    exact: bool = False
    plan: str | None = None
    budget: int | None = None
    recall: float | None = None
    accept: Accept = "likely"


def split_value(schema: Schema, arguments: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """Return (field name, value, options) of a search call's keyword arguments.

    Raises QueryError unless exactly one field is named; unknown names come with the nearest valid one.
    """
    if len(arguments) == 1:
        (name, value), options = next(iter(arguments.items())), _NONE
        if name in schema.fields:
            return name, value, options
    fields = [name for name in arguments if name in schema.fields]
    for name in arguments:
        if name not in schema.fields and name not in OPTIONS:
            raise QueryError(unknown("field or option", name, [*schema.fields, *SUPPORTED]))
    if len(fields) != 1:
        named = "none was named" if not fields else f"{', '.join(fields)} were named"
        raise QueryError(
            f"a search takes one field and the value to look for, such as {next(iter(schema.fields))}=...; "
            f"{named} (fields: {', '.join(schema.fields)})"
        )
    name = fields[0]
    return name, arguments[name], {key: value for key, value in arguments.items() if key != name}


def build_search(schema: Schema, name: str, options: dict[str, Any]) -> Search:
    """Return the checked search. Raises QueryError (SchemaError for an unknown field) that names what is
    wrong.
    """
    field = schema.field(name)
    if not options:
        return Search(name, field, field.threshold)
    for option in options:
        if option not in OPTIONS:
            raise QueryError(unknown("option", option, SUPPORTED))
    if options.get("where") is not None or options.get("params") is not None:
        raise QueryError("where= is not supported by this version: filter the hits by their attributes")
    if options.get("radius") is not None:
        raise QueryError(
            f"radius= is for distances; field {shown(name)} is searched by Jaccard: use threshold="
        )
    given, k = options.get("threshold"), options.get("k")
    threshold = None if given is None else check_fraction("threshold", given, QueryError)
    count = None if k is None else _positive("k", k)
    exact = options.get("exact", False)
    if not isinstance(exact, bool):
        raise QueryError(f"exact is {shown(exact)}: give True or False")
    plan = options.get("plan")
    if plan is not None and not (isinstance(plan, str) and plan in ("scan", "buckets")):
        raise QueryError(unknown("plan", plan, ("scan", "buckets")))
    if exact and plan == "buckets":
        raise QueryError("exact=True misses nothing, plan='buckets' can: give one of them")
    budget = options.get("budget")
    recall = options.get("recall")
    accept = options.get("accept", "likely")
    if not isinstance(accept, str) or accept not in ("likely", "possible"):
        raise QueryError(unknown("accept", accept, ("likely", "possible")))
    if threshold is None and count is None:
        threshold = field.threshold
    if threshold == 0.0 and count is None and not exact:
        raise QueryError("threshold=0 asks for every item: give k too, or exact=True for a full scan")
    return Search(
        name,
        field,
        threshold,
        count,
        exact,
        plan,
        None if budget is None else _positive("budget", budget),
        None if recall is None else check_fraction("recall", recall, QueryError),
        "possible" if accept == "possible" else "likely",
    )


def _positive(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise QueryError(f"{name} is {shown(value)}: give an integer of at least 1")
    if value < 1:
        raise QueryError(f"{name} is {shown(value)}: give at least 1")
    return int(value)


def field_of(schema: Schema, name: str | None) -> tuple[str, Field]:
    """Return the named field, or the only one. Raises SchemaError."""
    if name is None:
        name = schema.only_field()
    if not isinstance(name, str):
        raise SchemaError(f"field is {shown(name)}: give a field's name")
    return name, schema.field(name)
