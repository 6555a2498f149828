"""A new file with the live rows only, checked, then put in the old one's place."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simindex.admin.check import check
from simindex.errors import CorruptStore
from simindex.index.layouts import layout_of
from simindex.index.rows import rows_in_order
from simindex.index.schema import Schema
from simindex.index.writer import Writer
from simindex.store import Snapshot, Store
from simindex.types import U32

_ROWS = 65_536  # rows per transaction of the copy


@dataclass(frozen=True)
class Compaction:
    """items: copied. before, after: the file's size in bytes."""

    items: int
    before: int
    after: int


def compact(store: Store, timeout: float | None = None) -> Compaction:
    """Replace the file by a checked copy without dead rows and free pages; row ids become dense, runs one per
    band.

    Nobody can write meanwhile, all can read; handles of this process go on with the new file. On any failure
    the old file stays as it is. Needs room for the old file and two new ones. Raises Locked if another
    process has the file open, or a thread of this one keeps a snapshot; CorruptStore if the copy does not
    pass its check.
    """
    before = store.info().file_bytes
    items = 0

    def write_copy(snapshot: Snapshot, path: Path) -> None:
        nonlocal items
        for finding in snapshot.verify():  # copied, damage would get checksums that fit
            raise CorruptStore(f"the file is not sound, it stays as it is: {finding}")
        draft = path.with_name(f"{path.name}.draft")
        with Store.open(draft, "x", bulk_new=True) as copy:
            items = copy_all(snapshot, copy)
            copy.environment.copy(path, compact=True)  # leaves out the pages that merging freed; synced
        draft.unlink()
        with Store.open(path, "r") as copy:
            for finding in check(copy):
                raise CorruptStore(f"the compacted copy is not sound, the file stays as it was: {finding}")

    store.rewrite(write_copy, timeout)
    return Compaction(items, before, store.info().file_bytes)


def copy_all(snapshot: Snapshot, target: Store) -> int:
    """Copy every collection under its number, and every named value, into an empty store; return the number
    of items.
    """
    items = 0
    with target.write() as transaction:
        for name, value in snapshot.metas():
            transaction.put_meta(name, value)
    for number, stored in sorted(snapshot.catalog().items()):
        schema = Schema.from_bytes(bytes(stored))
        layout = layout_of(schema)
        _create(target, number, bytes(stored), layout)
        source = snapshot.collection(number, layout)
        for rows in _large(rows_in_order(source)):
            with target.write(bulk=True) as transaction:
                Writer(transaction.collection(number, layout), schema).copy(source, rows)
            items += len(rows)
        with target.write() as transaction:
            table = transaction.collection(number, layout)
            table.take_sequence(source.state.sequence - table.state.sequence)
            for name, count in source.state.counters.items():
                if name != "moved":
                    table.count(name, count - table.state.counters.get(name, 0))
            table.finish_merges(single=True)
    return items


def _create(target: Store, number: int, stored: bytes, layout: Any) -> None:
    """Make the collection under the number that it has in the source: handles know their collection by it."""
    with target.write() as transaction:
        made = transaction.create_collection(stored)
        while made < number:
            transaction.drop_collection(made)
            made = transaction.create_collection(stored)
        transaction.collection(number, layout)


def _large(parts: Iterator[U32]) -> Iterator[U32]:
    waiting: list[U32] = []
    for rows in parts:
        waiting.append(rows)
        if sum(map(len, waiting)) >= _ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
