"""All of a write that needs no transaction: features, signatures, postings, packed originals, packed records.

Pure and thread-safe; the kernels below release the GIL, so one thread can prepare a batch while another
writes one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simindex import kernels
from simindex.errors import FeatureError
from simindex.index.field import Field
from simindex.index.keys import Keys, take_packed
from simindex.index.records import pack_records
from simindex.index.schema import Schema
from simindex.index.values import column_features
from simindex.types import ABSENT, EMPTY, I64, SHORTENED, U8, U64, Features, Packed


@dataclass(frozen=True, slots=True)
class PreparedField:
    """One field of n items, as a table takes it.

    signatures: uint8 (n, width). states: uint8 (n,). postings: uint64 (bands, m), sorted, with rows 0..n-1.
    originals: packed sets of shingle hashes, None with verify="estimate". bucket_keys: uint64 (n, bands).
    """

    signatures: U8
    states: U8
    postings: U64
    originals: Packed | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """n items ready to be written. records: with sequence 0. fields: by name; all fields of the schema."""

    keys: Keys
    records: Packed
    fields: dict[str, PreparedField]

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, schema: Schema, index: I64) -> "Prepared":
        """Return the items at these positions (postings are made anew)."""
        if len(index) == len(self) and np.array_equal(index, np.arange(len(self))):
            return self
        fields = {}
        for name, part in self.fields.items():
            signatures, states = part.signatures[index], part.states[index]
            originals = None if part.originals is None else take_packed(part.originals, index)
            postings = schema.fields[name].scheme.postings(signatures, states)
            fields[name] = PreparedField(signatures, states, postings, originals)
        return Prepared(self.keys.take(index), take_packed(self.records, index), fields)

    def count_states(self) -> tuple[int, int]:
        """Return how many items have an empty field, and how many a shortened one."""
        empty = np.zeros(len(self), bool)
        shortened = np.zeros(len(self), bool)
        for part in self.fields.values():
            empty |= part.states == EMPTY
            shortened |= part.states == SHORTENED
        return int(empty.sum()), int(shortened.sum())


def prepare(
    schema: Schema,
    keys: Keys,
    columns: Mapping[str, Any],
    attributes: Sequence[bytes] | None = None,
) -> Prepared:
    """Return n items ready to be written.

    keys: checked keys (keys.key_column). columns: column name to its values (values.column_features says
    which forms); a column that is not there leaves its fields absent. attributes: packed
    (records.pack_attributes), None when no item has any. Raises FeatureError for values that are no features.
    """
    n = len(keys)
    fields: dict[str, PreparedField] = {}
    for column, names in schema.columns.items():
        if columns.get(column) is None:
            for name in names:
                fields[name] = absent_field(schema.fields[name], n)
            continue
        made: list[tuple[Any, Any]] = []  # fields that read a column in the same way share its features
        for name in names:
            field = schema.fields[name]
            way = (field.kind, field.text)
            features = next((found for known, found in made if known == way), None)
            if features is None:
                try:
                    features = column_features(field, columns[column], n)
                except FeatureError as error:
                    raise FeatureError(f"field {name!r}: {error}") from error
                if not isinstance(features, tuple):
                    made.append((way, features))
            fields[name] = prepare_field(field, features)
    return Prepared(keys, pack_records(keys, attributes), {name: fields[name] for name in schema.fields})


def prepare_field(field: Field, features: Features | tuple[U8, U8]) -> PreparedField:
    """Return one field of a batch from its features, or from ready (signatures, states)."""
    originals = None
    if isinstance(features, tuple):
        signatures, states = features
    else:
        signatures, states = field.family.sign(features), features.state
        if field.is_exact:
            originals, _ = kernels.pack_sets(features.hashes, features.ptr)
    return PreparedField(signatures, states, field.scheme.postings(signatures, states), originals)


def absent_field(field: Field, n: int) -> PreparedField:
    """Return a field that none of n items has."""
    signatures = np.zeros((n, field.family.width), np.uint8)
    states = np.full(n, ABSENT, np.uint8)
    postings = np.zeros((field.bands, 0), np.uint64)
    originals = Packed(np.zeros(0, np.uint8), np.zeros(n + 1, np.int64)) if field.is_exact else None
    return PreparedField(signatures, states, postings, originals)


def with_records(prepared: Prepared, records: Packed) -> Prepared:
    """Return the same items with other records."""
    return replace(prepared, records=records)
