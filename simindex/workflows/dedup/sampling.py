"""How many links the buckets miss: measured on sampled items by a full scan."""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from simindex import kernels
from simindex.index.field import Field
from simindex.store import trim
from simindex.types import PRESENT
from simindex.workflows.dedup.summary import SampledRecall

_SEED = 20260101
_Z = 1.959964
_WINDOW = 4096  # blocks of signatures, 128 MB
_GROUP = 8  # queries of one scan: what they find in one window fits in some 100 MB
LINKS = 1000
MAPPED_BYTES = 256 << 20


def sampled_recall(
    table: Any, path: str, number: int, field: Field, accept: str, sample: int
) -> SampledRecall:
    """Return the recall of the buckets and the signature filter, over the links of up to `sample` random
    items.

    Links are found by comparing each sampled signature with all stored ones, and verified as the field
    verifies; of an item with more than LINKS of them only that many, chosen at random, so that a huge cluster
    costs neither time nor memory.
    Cost: one scan of all signatures per sampled item (about 4 ms per million items), done in groups.
    """
    rows_in_all = table.state.next_row
    chosen = np.random.default_rng(_SEED).choice(rows_in_all, min(sample, rows_in_all), replace=False)
    rows = np.sort(chosen).astype(np.uint32)
    signatures = table.signatures(number)
    queries, states = signatures.rows(rows)
    asking = states >= PRESENT
    rows, queries = rows[asking], np.ascontiguousarray(queries[asking])
    if len(rows) == 0:
        return SampledRecall(len(chosen), 0, 0, None, None, None)
    slot_bytes = field.family.slot_bits // 8
    complete = (
        field.least_for(field.threshold, True)
        if field.is_exact
        else field.least_equal(field.threshold, accept)
    )
    least = np.full(len(rows), complete, np.uint16)
    of, found, equal = _scan(table, path, signatures, slot_bytes, queries, least)
    other = found != rows[of]
    of, found, equal = of[other], found[other], equal[other]
    if field.is_exact:
        is_link = _true_links(table, number, field, rows[of], found)
        of, found, equal = of[is_link], found[is_link], equal[is_link]
    filtered = equal >= (field.least_for(field.threshold, False) if field.is_exact else complete)
    hits = int((filtered & _share_a_bucket(field, signatures, queries, of, found)).sum())
    low, high = wilson(hits, len(found))
    recall = hits / len(found) if len(found) else None
    return SampledRecall(len(chosen), len(found), hits, recall, low, high)


def _scan(table: Any, path: str, signatures: Any, slot_bytes: int, queries: Any, least: Any) -> Any:
    """Return (query, row, equal slots) of the rows that reach `least`, a window of blocks at a time.

    Of a query that more than LINKS rows reach: LINKS of them, chosen at random.
    """
    n = table.state.next_row
    chance = np.random.default_rng(_SEED)
    blocks = -(-n // signatures.rows_per_block)
    groups = range(0, len(queries), _GROUP)
    kept: list[tuple[Any, ...]] = [()] * len(groups)
    for first in range(0, blocks, _WINDOW):
        stop = min(first + _WINDOW, blocks)
        rows = np.arange(first, stop, dtype=np.uint32) * np.uint32(signatures.rows_per_block)
        signatures.need(rows)
        window = np.zeros_like(signatures.addresses)  # a block without address is passed over
        window[first:stop] = signatures.addresses[first:stop]
        for at, start in enumerate(groups):
            ptr, found, equal = kernels.scan_equal(
                window, signatures.rows_per_block, signatures.header, signatures.width, slot_bytes,
                queries[start : start + _GROUP], n, table.live, least[start : start + _GROUP],
            )  # fmt: skip
            priority = chance.random(len(found), np.float32)
            chosen = np.concatenate([a + _least(priority[a:b]) for a, b in pairwise(ptr.tolist())])
            of = np.repeat(np.arange(start, start + len(ptr) - 1), np.minimum(np.diff(ptr), LINKS))
            part: tuple[Any, ...] = (of, found[chosen], equal[chosen], priority[chosen])
            kept[at] = _merged(kept[at], part) if kept[at] else part
        trim(path, MAPPED_BYTES)
    return tuple(np.concatenate(column) for column in list(zip(*kept, strict=True))[:3])


def _least(priority: Any) -> Any:
    """Return where the LINKS least numbers are, ascending."""
    if len(priority) <= LINKS:
        return np.arange(len(priority))
    return np.sort(np.argpartition(priority, LINKS)[:LINKS])


def _merged(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Join columns; of each query (first column) the LINKS entries of least priority (last column) stay."""
    both = [np.concatenate(pair) for pair in zip(a, b, strict=True)]
    order = np.lexsort((both[-1], both[0]))
    of = both[0][order]
    order = order[np.arange(len(of)) - np.searchsorted(of, of) < LINKS]
    return tuple(column[order] for column in both)


def _true_links(table: Any, number: int, field: Field, rows: Any, others: Any) -> Any:
    heap = table.originals(number)
    out = np.zeros(len(rows), np.bool_)
    for start in range(0, len(rows), 1 << 16):
        a, b = rows[start : start + (1 << 16)], others[start : start + (1 << 16)]
        heap.need(np.concatenate([a, b]))
        inter, size_a, size_b = kernels.intersect_pairs(
            heap.first_rows, heap.addresses, a, b, field.threshold
        )
        union = size_a.astype(np.int64) + size_b - inter
        out[start : start + len(a)] = inter >= field.threshold * union - 1e-9
    return out


def _share_a_bucket(field: Field, signatures: Any, queries: Any, of: Any, found: Any) -> Any:
    keys = field.scheme.keys(queries) >> np.uint64(32)
    out = np.zeros(len(found), np.bool_)
    for start in range(0, len(found), 1 << 14):
        stop = start + (1 << 14)
        theirs, _ = signatures.rows(found[start:stop])
        same = keys[of[start:stop]] == field.scheme.keys(theirs) >> np.uint64(32)
        out[start:stop] = same.any(axis=1)
    return out


def wilson(hits: int, n: int) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a proportion (Wilson 1927); (None, None) for n = 0."""
    if n == 0:
        return None, None
    p, z = hits / n, _Z
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)
