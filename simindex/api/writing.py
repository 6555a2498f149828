"""The verbs that write a collection, wherever its table comes from: a transaction of their own, or one around
several.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from simindex.api.pipeline import put_all
from simindex.api.reading import ReadVerbs
from simindex.errors import SchemaError, shown
from simindex.index import items
from simindex.index.duplicates import duplicate_search
from simindex.index.keys import Key
from simindex.index.prepare import Prepared
from simindex.index.putting import put_batch
from simindex.index.results import PutReport
from simindex.index.writer import Writer

T = TypeVar("T")
_MOST = 2**31 - 1  # items of a batch: no input is that long


class WriteVerbs(ReadVerbs):
    """put, insert, update, delete, put_many, and all that reads."""

    @abstractmethod
    def _write(self, action: Callable[[Any], T]) -> T:
        """Return action(table) for a table to write; an exception writes nothing. May call it again where
        room ran out.
        """

    def put(self, key: Key, item: Mapping[str, Any]) -> None:
        """Store an item under a key; what was stored under it is replaced as a whole.

        item: field name (or its source column) to value, and any other names as attributes (None, bool, int,
        float, str, bytes, lists, dicts). A field that is not named, or None, is absent: it matches nothing.
        Values of a text field: str or UTF-8 bytes; of a tokens field: a set of str, bytes or ints, a uint64
        array of hashes, or with verify="estimate" a ready signature (a datasketch MinHash where the field is
        made for them). One transaction: put_many is faster by far for many items. Raises KeyTypeError,
        FeatureError.
        """
        prepared = items.prepare_one(self._schema, key, item)
        self._write(lambda table: put_batch(table, self._schema, prepared))

    def insert(self, key: Key, item: Mapping[str, Any]) -> None:
        """Store an item under a new key. Raises KeyExists if the key is stored, and writes nothing then."""
        prepared = items.prepare_one(self._schema, key, item)
        self._write(lambda table: Writer(table, self._schema).put(prepared, "insert"))

    def update(self, key: Key, changes: Mapping[str, Any]) -> None:
        """Change the fields and attributes that `changes` names; all others stay.

        None makes a field absent; an attribute becomes None (put without it removes it). Raises KeyError if
        the key is not stored.
        """
        change = items.prepare_change(self._schema, key, changes)
        if not self._write(lambda table: items.update(table, self._schema, change)):
            raise KeyError(f"no item has key {shown(key)}")

    def delete(self, key: Key) -> bool:
        """Remove an item; return whether it was there."""
        keys = items.one_key(self._schema, key)
        return self._write(lambda table: items.delete(table, self._schema, keys))

    def put_many(
        self,
        rows: Any,
        *,
        batch: int = 10_000,
        on_error: str = "raise",
        on_duplicate: str | None = None,
        field: str | None = None,
        threshold: float | None = None,
        threads: int | None = None,
    ) -> PutReport:
        """Store many items and report; each batch is one transaction (inside db.write() all belong to it).

        rows: mappings with "key", fields and attributes (any iterable, read lazily), an Arrow table, or a
        dict of columns: "key" (sequence or integer array) and fields (list of values, Packed, signatures
        uint8 (n, width), or (hashes, ptr) of sets). on_error: "raise" (nothing of the batch at fault is
        stored) or "skip" (bad records are left out and listed). on_duplicate: "skip" stores no near-
        duplicates of what is stored or came before, and lists them; "keep" stores and lists them; "report"
        stores nothing. field, threshold: what a duplicate is (default: the only field, its threshold).
        threads: how many threads prepare batches beside the one that writes (default 1; 0: none).
        """
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise SchemaError(f"batch is {shown(batch)}: give an integer of at least 1")
        if not isinstance(on_error, str) or on_error not in ("raise", "skip"):
            raise SchemaError(f"on_error is {shown(on_error)}: give 'raise' or 'skip'")
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 0):
            raise SchemaError(f"threads is {shown(threads)}: give an integer of at least 0")
        search = duplicate_search(self._schema, on_duplicate, field, threshold)
        schema = self._schema

        def write(prepared: Prepared) -> PutReport:
            if on_duplicate == "report":
                with self._reading() as table:
                    return put_batch(table, schema, prepared, search, on_duplicate)
            return self._write(lambda table: put_batch(table, schema, prepared, search, on_duplicate))

        return put_all(
            schema, rows, min(batch, _MOST), on_error == "skip", 1 if threads is None else threads, write
        )
