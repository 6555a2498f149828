"""One item at a time: put, update, delete."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simindex.errors import FeatureError
from simindex.index.keys import Keys, check_key, key_column
from simindex.index.prepare import Prepared, PreparedField, prepare
from simindex.index.records import pack_attributes, pack_records, record_of
from simindex.index.rows import MISSING, rows_of
from simindex.index.schema import Schema
from simindex.index.writer import Writer, gather
from simindex.types import Packed


def one_key(schema: Schema, key: object) -> Keys:
    """Return a checked key as a batch of one. Raises KeyTypeError."""
    return key_column(schema.key, [check_key(schema.key, key)])


def prepare_one(schema: Schema, key: object, item: object) -> Prepared:
    """Return one item ready to be written. Raises KeyTypeError, FeatureError."""
    keys = one_key(schema, key)
    columns, attributes = _split(schema, item)
    return prepare(schema, keys, columns, [pack_attributes(attributes)] if attributes else None)


def _split(schema: Schema, item: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (columns of one value, attributes) of an item."""
    if not isinstance(item, Mapping):
        raise FeatureError(f"an item is a mapping of fields and attributes, not {type(item).__name__}")
    if "key" in item:
        raise FeatureError("an item cannot hold 'key': give the key as the first argument")
    read = {name: list(v) if hasattr(v, "__next__") else v for name, v in item.items()}
    columns = {name: [read[name]] for name in schema.columns if read.get(name) is not None}
    attributes = {
        n: v for n, v in read.items() if n not in schema.columns or (n in schema.kept and v is not None)
    }
    return columns, attributes


@dataclass(frozen=True)
class Change:
    """An update made ready. fields: those that the change names. attributes, gone: what to set and what to
    remove.
    """

    keys: Keys
    record: Packed
    fields: dict[str, PreparedField]
    attributes: dict[str, Any]
    gone: frozenset[str]


def prepare_change(schema: Schema, key: object, changes: object) -> Change:
    """Return an update ready to be written. Raises KeyTypeError, FeatureError."""
    keys = one_key(schema, key)
    columns, attributes = _split(schema, changes)
    pack_attributes(attributes)
    prepared = prepare(schema, keys, columns)
    assert isinstance(changes, Mapping)
    named = [column for column in schema.columns if column in changes]
    fields = {name: prepared.fields[name] for column in named for name in schema.columns[column]}
    gone = frozenset(c for c in named if c in schema.kept and changes[c] is None)
    return Change(keys, prepared.records, fields, attributes, gone)


def update(table: Any, schema: Schema, change: Change) -> bool:
    """Apply an update; return False if the key is not stored."""
    row = int(rows_of(table, change.keys, change.record)[0])
    if row == MISSING:
        return False
    stored = {n: v for n, v in record_of(table, row)[2].items() if n not in change.gone}
    merged = {**stored, **change.attributes}
    rows = np.array([row], np.uint32)
    fields: dict[str, PreparedField] = {}
    for name, field in schema.fields.items():
        part = change.fields.get(name)
        if part is None:
            number = schema.numbers[name]
            signatures, states = gather(table, number, rows)
            originals = table.originals(number).values(rows) if field.is_exact else None
            part = PreparedField(signatures, states, field.scheme.postings(signatures, states), originals)
        fields[name] = part
    records = pack_records(change.keys, [pack_attributes(merged)] if merged else None)
    writer = Writer(table, schema)
    if writer.put(Prepared(change.keys, records, fields)).replaced:
        writer.move_sparse_rows()
    return True


def delete(table: Any, schema: Schema, keys: Keys) -> bool:
    """Remove an item; return whether it was there."""
    rows = rows_of(table, keys, pack_records(keys))
    if rows[0] == MISSING:
        return False
    writer = Writer(table, schema)
    writer.remove(rows.astype(np.uint32))
    writer.move_sparse_rows()
    return True
