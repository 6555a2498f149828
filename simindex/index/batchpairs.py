"""Near-duplicates inside one batch that is not stored yet: pairs out of small buckets, large buckets on
demand.
"""

from typing import Any

import numpy as np

from simindex import kernels
from simindex.index.field import Field
from simindex.index.query import Queries
from simindex.types import F64, I64, U8, U64

_SMALL_BUCKET = 16  # members; a bucket's pairs are listed up to this size, beyond it they would be too many
_VERIFIED_AT_MOST = 64  # matches of one record in large buckets that are verified, most equal slots first


class BatchPairs:
    """The pairs of a batch's records that reach the threshold: `earlier(i)` for one record, in the order of
    the batch.

    Pairs that meet in a small bucket are verified at once, all together. Of large buckets only the records
    that were added are looked at.
    """

    def __init__(self, field: Field, threshold: float, queries: Queries, postings: U64) -> None:
        self._field = field
        self._threshold = threshold
        self._queries = queries
        self._least = (
            field.least_for(threshold, False) if field.is_exact else field.least_equal(threshold, "likely")
        )
        n = len(queries)
        a, b, large = _meetings(postings, n)
        a, b, score = self._verified(a, b)
        order = np.lexsort((a, b))
        self._others, self._scores = a[order], score[order]
        self._starts = np.searchsorted(b[order], np.arange(n + 1))
        self._large: dict[int, list[tuple[int, int]]] = large
        self._added: dict[tuple[int, int], list[int]] = {}
        self.involved = np.zeros(n, bool)
        self.involved[a] = self.involved[b] = True
        self.involved[list(large)] = True

    def _verified(self, a: I64, b: I64) -> tuple[I64, I64, F64]:
        if len(a) == 0:
            return a, b, np.zeros(0, np.float64)
        n, width = self._queries.signatures.shape
        header = (48 + (n + 3) // 4 + 15) // 16 * 16  # the batch as one block of signatures (csrc/views.h)
        memory = np.zeros(header + n * width, np.uint8)
        memory[header:] = self._queries.signatures.reshape(-1)
        block = np.array([kernels.address_of(memory)], np.uint64)
        slot_bytes = self._field.family.slot_bits // 8
        equal = kernels.pair_equal(
            block, n, header, width, slot_bytes, a.astype(np.uint32), b.astype(np.uint32)
        )
        passing = equal >= self._least
        a, b, equal = a[passing], b[passing], equal[passing]
        if not self._field.is_exact:
            return a, b, self._field.estimates[equal]
        original = self._queries.original
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        score = np.array([kernels.jaccard_packed(original(i), original(j)) for i, j in pairs], np.float64)
        passing = score >= self._threshold
        return a[passing], b[passing], score[passing]

    def add(self, i: int) -> None:
        """Let later records meet record i in large buckets."""
        for bucket in self._large.get(i, ()):
            self._added.setdefault(bucket, []).append(i)

    def earlier(self, i: int) -> list[tuple[int, float]]:
        """Return (position, score) of the earlier records that reach the threshold: all that meet i in a
        small bucket, and the best of those added before that meet it in a large one.
        """
        start, stop = int(self._starts[i]), int(self._starts[i + 1])
        found = list(zip(self._others[start:stop].tolist(), self._scores[start:stop].tolist(), strict=True))
        buckets = self._large.get(i)
        if buckets:
            known = {position for position, _ in found}
            others = {o for bucket in buckets for o in self._added.get(bucket, ())} - known
            if others:
                found += self._from_large(i, np.array(sorted(others), np.int64))
        return found

    def _from_large(self, i: int, others: I64) -> list[tuple[int, float]]:
        signed = self._queries.signatures
        slot_bytes = self._field.family.slot_bits // 8
        equal = kernels.count_equal(np.ascontiguousarray(signed[others]), signed[i], slot_bytes)
        passing = equal >= self._least
        others, equal = others[passing], equal[passing]
        if not self._field.is_exact:
            return list(zip(others.tolist(), self._field.estimates[equal].tolist(), strict=True))
        order = np.argsort(-equal.astype(np.int64), kind="stable")[:_VERIFIED_AT_MOST]
        mine: U8 = self._queries.original(i)
        found = [
            (o, float(kernels.jaccard_packed(mine, self._queries.original(o))))
            for o in others[order].tolist()
        ]
        return [(other, score) for other, score in found if score >= self._threshold]


def _meetings(postings: U64, n: int) -> tuple[I64, I64, dict[int, list[tuple[int, int]]]]:
    """Return (a, b, large): the pairs a < b of records that meet in a small bucket, each once; and for each
    record in large buckets these, as (band, key).
    """
    pairs: list[Any] = [np.zeros(0, np.int64)]
    large: dict[int, list[tuple[int, int]]] = {}
    for band, sorted_postings in enumerate(postings):
        keys = sorted_postings >> np.uint64(32)
        rows = (sorted_postings & np.uint64(0xFFFFFFFF)).astype(np.int64)
        if len(keys) < 2:
            continue
        starts = np.nonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))[0]
        sizes = np.diff(np.append(starts, len(keys)))
        if sizes.max() < 2:
            continue
        size_of = np.repeat(sizes, sizes)
        for d in range(1, min(int(sizes.max()), _SMALL_BUCKET)):
            meet = (keys[d:] == keys[:-d]) & (size_of[d:] <= _SMALL_BUCKET)
            pairs.append(rows[:-d][meet] * n + rows[d:][meet])
        for at in np.nonzero(size_of > _SMALL_BUCKET)[0].tolist():
            large.setdefault(int(rows[at]), []).append((band, int(keys[at])))
    code = kernels.distinct(np.concatenate(pairs))
    return code // max(n, 1), code % max(n, 1), large
