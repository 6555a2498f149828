"""What the meta database knows beyond single collections: their numbers and schemas, and named values."""

import struct
from collections.abc import Iterator
from typing import Any

from simindex.errors import CorruptStore, SchemaError
from simindex.store import layout
from simindex.store.collection import CollectionState, check, checked

_NUMBER = struct.Struct("<I")


def read(raw: Any) -> dict[int, bytes]:
    """Return the schema of every collection by number."""
    found = {}
    with raw.txn.cursor(db=raw.db(layout.META)) as cursor:
        more = cursor.set_range(layout.SCHEMA)
        while more:
            key = bytes(cursor.key())
            if not key.startswith(layout.SCHEMA):
                break
            number = int.from_bytes(key[1:], "big")
            found[number] = bytes(
                check(cursor.value(), layout.SCHEMA_MAGIC, f"schema of collection {number}")
            )
            more = cursor.next()
    return found


def create(raw: Any, schema: bytes) -> int:
    """Add a collection with an empty state and return its number, never used before."""
    txn, meta = raw.txn, raw.db(layout.META)
    number = next_number(raw)
    if number > layout.MAX_COLLECTION:
        raise SchemaError(f"all {layout.MAX_COLLECTION} collection numbers are used")
    txn.put(layout.NUMBERS, _NUMBER.pack(number + 1) if number < layout.MAX_COLLECTION else b"", db=meta)
    prefix = layout.collection_prefix(number)
    txn.put(layout.SCHEMA + prefix, checked(layout.SCHEMA_MAGIC, schema), db=meta)
    txn.put(layout.STATE + prefix, CollectionState().encode(), db=meta)
    return number


def next_number(raw: Any) -> int:
    """Return the number that the next collection gets; the first is 1."""
    value = raw.txn.get(layout.NUMBERS, db=raw.db(layout.META))
    if value is None:
        return 1
    if len(value) == 0:
        return layout.MAX_COLLECTION + 1
    if len(value) != _NUMBER.size:
        raise CorruptStore(f"next collection number: {len(value)} bytes, not {_NUMBER.size}")
    return _NUMBER.unpack(value)[0]  # type: ignore[no-any-return]


def drop(raw: Any, number: int) -> None:
    """Delete every key of a collection in every database."""
    txn, meta = raw.txn, raw.db(layout.META)
    prefix = layout.collection_prefix(number)
    if not txn.delete(layout.SCHEMA + prefix, db=meta):
        raise SchemaError(f"no collection has number {number}")
    txn.delete(layout.STATE + prefix, db=meta)
    txn.delete(layout.CHANGES + prefix, db=meta)
    for name in layout.DATABASES:
        if name != layout.META:
            _delete_range(txn, raw.db(name), prefix)


def _delete_range(txn: Any, db: Any, prefix: bytes) -> None:
    n = len(prefix)
    with txn.cursor(db=db) as cursor:
        more = cursor.set_range(prefix)
        while more and cursor.key()[:n] == prefix:
            more = cursor.delete()


def put_meta(raw: Any, name: str, value: bytes) -> None:
    """Store a named value."""
    raw.txn.put(_meta_key(name), checked(layout.USER_MAGIC, value), db=raw.db(layout.META))


def get_meta(raw: Any, name: str) -> bytes | None:
    """Return a named value; None if there is none."""
    value = raw.txn.get(_meta_key(name), db=raw.db(layout.META))
    return None if value is None else bytes(check(value, layout.USER_MAGIC, f"value {name!r}"))


def metas(raw: Any) -> Iterator[tuple[str, bytes]]:
    """Yield (name, value) of everything that put_meta stored."""
    with raw.txn.cursor(db=raw.db(layout.META)) as cursor:
        found = cursor.set_range(layout.USER)
        while found and bytes(cursor.key()[:1]) == layout.USER:
            name = bytes(cursor.key()[1:]).decode()
            yield name, bytes(check(cursor.value(), layout.USER_MAGIC, f"value {name!r}"))
            found = cursor.next()


def _meta_key(name: str) -> bytes:
    key = layout.USER + name.encode()
    if not 1 < len(key) <= 512 - 1:
        raise ValueError(f"a name has 1 to 510 bytes, {name[:20]!r} has {len(key) - 1}")
    return key
