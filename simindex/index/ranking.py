"""From verified rows to the user's hits: keys, total order, the cut at k."""

from typing import Any

import numpy as np

from simindex.index.executor import Found
from simindex.index.records import keys_of, record_of
from simindex.index.request import Search
from simindex.index.results import BatchHits, Hit, Hits
from simindex.index.schema import Schema
from simindex.types import F64, I64


def order_of(query: I64, score: F64, keys: Any) -> I64:
    """Return the order: by query, best score first, then by key (int by value, str by code point, bytes by
    bytes).
    """
    if isinstance(keys, np.ndarray):
        return np.lexsort((keys, -score, query)).astype(np.int64)
    order = np.lexsort((-score, query))
    if len(order) < 2:
        return order.astype(np.int64)
    q, s = query[order], score[order]
    ties = (q[1:] == q[:-1]) & (s[1:] == s[:-1])
    if not ties.any():
        return order.astype(np.int64)
    ranked = sorted(order.tolist(), key=lambda i: (query[i], -score[i], keys[i]))
    return np.array(ranked, np.int64)


def cut(query: I64, score: F64, order: I64, n: int, k: int | None) -> tuple[I64, I64, Any]:
    """Return (order of what stays, offsets int64 (n + 1,), tie_cut bool (n,)) after the cut at k."""
    counts = np.bincount(query, minlength=n).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    tied = np.zeros(n, bool)
    if k is None or counts.max(initial=0) <= k:
        return order, starts.astype(np.int64), tied
    position = np.arange(len(order)) - np.repeat(starts[:-1], counts)
    over = counts > k
    last = starts[:-1][over] + k - 1
    tied[over] = score[order[last]] == score[order[last + 1]]
    offsets = np.concatenate([[0], np.cumsum(np.minimum(counts, k))]).astype(np.int64)
    return order[position < k], offsets, tied


def single(table: Any, schema: Schema, search: Search, found: Found) -> Hits:
    """Return the hits of one query as objects."""
    keys = keys_of(table, schema.key, found.rows)
    order = order_of(found.query, found.score, keys)
    order, _, tied = cut(found.query, found.score, order, 1, search.k)
    field = search.field
    hits = Hits(
        plan=found.plan.kind, truncated=bool(found.truncated[0]), tie_cut=bool(tied[0]), measure=field.measure
    )
    low, high = field.intervals
    for i in order.tolist():
        score, equal = float(found.score[i]), int(found.equal[i])
        key, _, attributes = record_of(table, int(found.rows[i]))
        ends = (score, score) if field.is_exact else (float(low[equal]), float(high[equal]))
        hits.append(Hit(key, score, *ends, field.is_exact, attributes))
    return hits


def batch(table: Any, schema: Schema, search: Search, found: Found, n: int) -> BatchHits:
    """Return the hits of n queries as arrays."""
    keys = keys_of(table, schema.key, found.rows)
    order = order_of(found.query, found.score, keys)
    order, offsets, tied = cut(found.query, found.score, order, n, search.k)
    score, equal = found.score[order], found.equal[order]
    field = search.field
    low, high = (score, score) if field.is_exact else (field.intervals[0][equal], field.intervals[1][equal])
    ranked: Any = keys[order] if isinstance(keys, np.ndarray) else [keys[i] for i in order.tolist()]
    return BatchHits(
        offsets,
        ranked,
        score,
        low,
        high,
        field.is_exact,
        found.plan.kind,
        found.truncated,
        tied,
        field.measure,
    )
