"""Two items side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simindex import kernels
from simindex.errors import QueryError, shown
from simindex.index.field import Field
from simindex.index.query import Queries, make_query
from simindex.index.request import field_of
from simindex.index.rows import MISSING, row_of
from simindex.index.schema import Schema
from simindex.index.spelling import unknown
from simindex.index.writer import gather
from simindex.types import PRESENT, Packed


@dataclass(frozen=True)
class Comparison:
    """features_a, features_b, shared: numbers of distinct shingles or tokens, None with verify="estimate".

    score: true Jaccard, None with verify="estimate". estimate, low, high: from the signatures, with its 95 %
    interval. equal, k: equal slots of how many. shared_bands: buckets that both are in. chance: the chance
    that a pair of this similarity is found by buckets. All are None or 0 where one of the two has no
    features.
    """

    field: str
    measure: str
    features_a: int | None
    features_b: int | None
    shared: int | None
    score: float | None
    estimate: float | None
    low: float | None
    high: float | None
    equal: int
    k: int
    shared_bands: int
    bands: int
    chance: float

    def __str__(self) -> str:
        if self.estimate is None:
            return f"{self.field}: nothing to compare, at least one has no features"
        lines = []
        if self.score is not None:
            lines.append(
                f"{self.measure}: {self.score:.4f} "
                f"({self.shared} shared; {self.features_a} and {self.features_b})"
            )
        lines.append(
            f"estimate: {self.estimate:.4f}, {self.low:.4f} to {self.high:.4f} "
            f"({self.equal} of {self.k} slots equal)"
        )
        lines.append(
            f"shared buckets: {self.shared_bands} of {self.bands}; chance to be found: {self.chance:.4f}"
        )
        return f"{self.field}\n  " + "\n  ".join(lines)


def compare(table: Any, schema: Schema, a: object, b: object, field: str | None = None) -> Comparison:
    """Compare two items by one field.

    a, b: the key of a stored item, or a mapping {field: value}. field: which field, if it does not follow
    from the mappings or the schema. Raises KeyError for a key that is not stored, QueryError for a mapping of
    anything but one field.
    """
    for one in (a, b):
        if field is None and isinstance(one, Mapping):
            if len(one) != 1:
                raise QueryError(f"a value to compare is a mapping of one field, not of {len(one)}")
            field = next(iter(one))
    name, settings = field_of(schema, field)
    one, other = _side(table, schema, name, settings, a), _side(table, schema, name, settings, b)
    return _compared(name, settings, one, other)


def _side(table: Any, schema: Schema, name: str, field: Field, given: object) -> Queries:
    if isinstance(given, Mapping):
        if list(given) != [name]:
            raise QueryError(unknown("field", next(iter(given), None), [name]))
        return make_query(field, given[name])
    row = row_of(table, schema, given)
    if row == MISSING:
        raise KeyError(f"no item has key {shown(given)}")
    rows = np.array([row], np.uint32)
    signatures, states = gather(table, schema.numbers[name], rows)
    originals: Packed | None = table.originals(schema.numbers[name]).values(rows) if field.is_exact else None
    return Queries(signatures, states, originals)


def _compared(name: str, field: Field, a: Queries, b: Queries) -> Comparison:
    family, scheme = field.family, field.scheme
    if a.states[0] < PRESENT or b.states[0] < PRESENT:
        return Comparison(
            name, field.measure, None, None, None, None, None, None, None, 0, family.k, 0, field.bands, 0.0
        )
    equal = int(kernels.count_equal(a.signatures, b.signatures[0], family.slot_bits // 8)[0])
    shared_bands = int((scheme.keys(a.signatures) == scheme.keys(b.signatures)).sum())
    estimate, low, high = float(field.estimates[equal]), *(float(end[equal]) for end in field.intervals)
    counts: tuple[int | None, int | None, int | None] = (None, None, None)
    score = None
    if field.is_exact:
        shared, count_a, count_b = kernels.intersect_packed(a.original(0), b.original(0))
        counts, score = (count_a, count_b, shared), shared / max(count_a + count_b - shared, 1)
    chance = field.bucket_probability(estimate if score is None else score)
    return Comparison(
        name,
        field.measure,
        *counts,
        score,
        estimate,
        low,
        high,
        equal,
        family.k,
        shared_bands,
        field.bands,
        chance,
    )
