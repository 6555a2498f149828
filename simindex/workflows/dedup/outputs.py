"""The second pass: survivors, clusters, and the labels of the index."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from simindex import kernels
from simindex.index.keys import int_keys
from simindex.index.layouts import layout_of
from simindex.index.links import scores_to
from simindex.index.prepare import Prepared, PreparedField
from simindex.index.records import pack_attributes, unpack_record
from simindex.index.writer import Writer, gather
from simindex.store import trim
from simindex.types import F64, I64, U32, Packed
from simindex.workflows.dedup.options import FIELD
from simindex.workflows.dedup.state import State
from simindex.workflows.io import Block, Source, Survivors, line_mask, open_survivors
from simindex.workflows.io.streams import Output

_ROWS = 1 << 16  # rows worked on at a time
_MOVE = 1 << 14
MAPPED_BYTES = 256 << 20  # of files, resident in a pass over the state
Step = Callable[[int], None]
T = TypeVar("T")


def write_survivors(
    source: Source, state: State, labels: U32, path: str, temporary: str, threads: int, step: Step
) -> Survivors:
    """Write the first item of every component, complete on disk but under its temporary name.

    With two threads or more, one reads ahead while the other writes.
    """

    def passes(report: Step | None = None) -> Iterator[tuple[Any, Any]]:
        row = 0
        for block, payload in source.again(state.blocks):
            stop = row + block.records
            keep = labels[row:stop] == np.arange(row, stop, dtype=np.uint32)
            row = stop
            yield payload, line_mask(block.lines, block.accepted, keep)
            if report is not None:
                report(block_size(block, payload))

    writer = open_survivors(source, path, temporary, passes())
    try:
        for payload, kept in passes(step) if threads == 1 else one_ahead(passes(step)):
            writer.write(payload, kept)
        writer.seal()
    except BaseException:
        writer.close()
        raise
    return writer


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items; the next one is made in another thread while the caller works on this one."""
    with ThreadPoolExecutor(1, thread_name_prefix="simindex-ahead") as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def block_size(block: Block, payload: Any) -> int:
    """Return the bytes that a block's content stands for, roughly."""
    return len(payload) if isinstance(payload, bytes) else block.stop - block.offset


class Sizes:
    """How large the components are.

    Sizes: uint32, shape (n,): members at a component's first row, 1 elsewhere.
    """

    def __init__(self, labels: U32) -> None:
        self.sizes: U32 = np.ones(len(labels), np.uint32)
        self.duplicates = 0
        for start in range(0, len(labels), 1 << 20):
            part = labels[start : start + (1 << 20)]
            joined = part[part != np.arange(start, start + len(part), dtype=np.uint32)]
            self.duplicates += len(joined)
            np.add.at(self.sizes, joined, 1)
        self.largest = int(self.sizes.max(initial=0))
        self.clusters = int((self.sizes > 1).sum())


def member_rows(labels: U32, sizes: U32) -> Iterator[U32]:
    """Yield the rows of components of two or more, ascending, in arrays of bounded size."""
    for start in range(0, len(labels), _ROWS):
        part = labels[start : start + _ROWS]
        rows = np.flatnonzero(sizes[part] > 1) + start
        if len(rows):
            yield rows.astype(np.uint32)


def write_clusters(
    state: State, table: Any, labels: U32, sizes: U32, out: Output, has_labels: bool
) -> tuple[float | None, int]:
    """Write one JSON line per member of a cluster of two or more, in input order.

    Returns (the lowest score of a member to its kept item, that member's record number); (None, 0) without
    clusters.
    """
    lowest: float | None = None
    where = 0
    for rows in member_rows(labels, sizes):
        kept = labels[rows]
        scores = member_scores(state, table, rows, kept)
        items = item_names(table, rows, has_labels)
        names = item_names(table, kept, has_labels)
        lines = []
        for row, root, item, name, score in zip(
            rows.tolist(), kept.tolist(), items, names, scores.tolist(), strict=True
        ):
            is_kept = row == root
            entry = {"item": item, "cluster": name, "kept": is_kept, "score": None if is_kept else score}
            lines.append(json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        out.write(b"\n".join([*lines, b""]))
        trim(state.path, MAPPED_BYTES)
        worst = np.where(rows == kept, 2.0, scores)
        at = int(np.argmin(worst))
        if worst[at] < (2.0 if lowest is None else lowest):
            lowest, where = float(worst[at]), int(rows[at]) + 1
    out.seal()
    return lowest, where


def member_scores(state: State, table: Any, rows: U32, kept: U32) -> F64:
    """Return the similarity of each row to the kept one; 1 for the kept ones themselves."""
    scores = np.ones(len(rows), np.float64)
    other = rows != kept
    if other.any():
        number = state.schema.numbers[FIELD]
        scores[other] = scores_to(table, number, state.schema.fields[FIELD], rows[other], kept[other])
    return scores


def item_names(table: Any, rows: U32, has_labels: bool) -> list[Any]:
    """Return each row's label, or where it has none its record number from 1."""
    numbers = (rows.astype(np.int64) + 1).tolist()
    if not has_labels:
        return numbers  # type: ignore[no-any-return]
    unique, inverse = np.unique(rows, return_inverse=True)
    found = [attributes.get("label") for _, _, attributes in unpacked(table.records.values(unique))]
    return [numbers[i] if found[at] is None else found[at] for i, at in enumerate(np.ravel(inverse).tolist())]


def unpacked(records: Packed) -> Iterator[tuple[Any, int, dict[str, Any]]]:
    """Yield (key, sequence, attributes) of packed records."""
    raw = records.data.tobytes()
    ends = records.offsets.tolist()
    for a, b in pairwise(ends):
        yield unpack_record(raw[a:b])


def label_index(state: State, labels: U32, sizes: U32) -> None:
    """Give every member of a cluster of two or more its attribute `cluster`: the kept member's key. One
    transaction.

    Rows are immutable, so these items get new rows; the phase becomes "done" in the same transaction.
    """
    state.head["phase"] = "done"
    with state.store.write(bulk=True) as transaction:
        table = transaction.collection(state.number, layout_of(state.schema))
        writer = Writer(table, state.schema)
        for rows in member_rows(labels, sizes):
            for start in range(0, len(rows), _MOVE):
                _move(writer, table, rows[start : start + _MOVE], labels)
                trim(state.path, MAPPED_BYTES)
        transaction.put_meta("dedup", state._packed_head())


def _move(writer: Writer, table: Any, rows: U32, labels: U32) -> None:
    schema = writer.schema
    field, number = schema.fields[FIELD], schema.numbers[FIELD]
    parts = []
    for (_, _, attributes), root in zip(
        unpacked(table.records.values(rows)), labels[rows].tolist(), strict=True
    ):
        parts.append(pack_attributes(attributes | {"cluster": root + 1}))
    offsets: I64 = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    values = rows.astype(np.uint64) + 1
    keys = int_keys(values)
    data = np.frombuffer(b"".join(parts), np.uint8)
    records = Packed(*kernels.pack_records(values, None, False, data, offsets))
    signatures, states = gather(table, number, rows)
    originals = table.originals(number).values(rows) if field.is_exact else None
    prepared = PreparedField(signatures, states, field.scheme.postings(signatures, states), originals)
    writer.remove(rows)
    writer.put(Prepared(keys, records, {FIELD: prepared}), "new")
