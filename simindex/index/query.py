"""Queries made ready for the kernels: signatures, bucket keys, packed shingle sets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from simindex import kernels
from simindex.errors import FeatureError
from simindex.index.field import Field
from simindex.index.ingest import column_length
from simindex.index.values import column_features
from simindex.types import I64, PRESENT, U8, Packed


@dataclass(frozen=True, slots=True)
class Queries:
    """n queries of one field. signatures: uint8 (n, width). states: uint8 (n,). originals: packed sets, None
    with estimates.
    """

    signatures: U8
    states: U8
    originals: Packed | None

    def __len__(self) -> int:
        return len(self.states)

    @property
    def answerable(self) -> I64:
        """Positions of the queries that have features; the others match nothing."""
        return np.nonzero(self.states >= PRESENT)[0].astype(np.int64)

    def original(self, i: int) -> U8:
        """Return query i's packed set."""
        assert self.originals is not None
        offsets = self.originals.offsets
        return self.originals.data[int(offsets[i]) : int(offsets[i + 1])]


def make_queries(field: Field, values: Any) -> Queries:
    """Return a batch of queries from a column of values (values.column_features says which forms).

    Raises FeatureError that names the first value at fault.
    """
    if isinstance(values, Iterable) and not hasattr(values, "__len__"):
        values = list(values)
    n = column_length(values)
    try:
        features = column_features(field, values, n)
    except FeatureError as error:
        if n > 1 and isinstance(values, list | tuple) and not isinstance(values[0], np.ndarray):
            for i, value in enumerate(values):
                try:
                    column_features(field, [value], 1)
                except FeatureError as one:
                    raise FeatureError(f"query {i}: {one}") from error
        raise
    if isinstance(features, tuple):
        return Queries(*features, None)
    originals = kernels.pack_sets(features.hashes, features.ptr)[0] if field.is_exact else None
    return Queries(field.family.sign(features), features.state, originals)


def make_query(field: Field, value: Any) -> Queries:
    """Return one query. A value of None is refused: an absent field matches nothing and asks nothing."""
    if value is None:
        raise FeatureError("the value to search for is None")
    return make_queries(field, [value])
