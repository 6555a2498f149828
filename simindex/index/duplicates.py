"""Near-duplicates of a batch that is about to be written: of what is stored, and inside the batch.

The records are taken one after the other, in order, as if each were its own call: a record is compared with
what is stored then and with the earlier records that would be stored. It is never a duplicate of an older
version of itself.
"""

from typing import Any, Literal

import numpy as np

from simindex import kernels
from simindex.errors import SchemaError
from simindex.index.executor import find
from simindex.index.field import Field, check_fraction
from simindex.index.prepare import Prepared
from simindex.index.query import Queries
from simindex.index.records import keys_of
from simindex.index.request import Search, field_of
from simindex.index.results import Duplicate
from simindex.index.rows import MISSING, rows_of
from simindex.index.schema import Schema
from simindex.index.spelling import unknown
from simindex.types import I64, PRESENT, U8, U64

Policy = Literal["skip", "report", "keep"]
POLICIES = ("skip", "report", "keep")
_VERIFIED_AT_MOST = 64  # matches of one record inside its batch that are verified, most equal slots first
Match = tuple[float, int, int]  # score, 0 = a stored row, 1 = a position in the batch, which


def duplicate_search(schema: Schema, policy: object, field: str | None, threshold: object) -> Search | None:
    """Return the search that finds duplicates, None without a policy. Raises SchemaError for settings that
    are wrong.
    """
    if policy is None:
        if field is not None or threshold is not None:
            raise SchemaError("field= and threshold= say what a duplicate is: give on_duplicate= too")
        return None
    if policy not in POLICIES:
        raise SchemaError(unknown("on_duplicate", policy, POLICIES))
    name, settings = field_of(schema, field)
    at = settings.threshold if threshold is None else check_fraction("threshold", threshold, SchemaError)
    if at == 0.0:
        raise SchemaError("threshold is 0: everything would be a duplicate")
    return Search(name, settings, at, plan="scan" if at < settings.threshold else "buckets")


def find_duplicates(
    table: Any, schema: Schema, prepared: Prepared, search: Search, policy: str
) -> tuple[I64, list[Duplicate]]:
    """Return (positions of the records that are no duplicates, int64, ascending; the duplicates with their
    best other).

    policy "keep": earlier duplicates count as stored. "skip" and "report": they do not.
    """
    n = len(prepared)
    part = prepared.fields[search.name]
    queries = Queries(part.signatures, part.states, part.originals)
    found = find(table, schema.numbers[search.name], search, queries)
    own = rows_of(table, prepared.keys, prepared.records)
    foreign = found.rows != own[found.query]
    query, rows, score = found.query[foreign], found.rows[foreign], found.score[foreign]
    starts = np.searchsorted(query, np.arange(n + 1))
    meeting = _meeting(part.postings, n)
    interesting = meeting | (np.diff(starts) > 0)
    if not interesting.any():
        return np.arange(n, dtype=np.int64), []
    bucket_keys = search.field.scheme.keys(part.signatures) if meeting.any() else np.zeros((n, 0), np.uint64)
    inside = _Inside(search, queries, bucket_keys)
    fresh = np.ones(n, bool)
    gone: set[int] = set()  # stored rows that an accepted earlier record replaces
    matches: list[tuple[int, Match]] = []
    for i in range(n):
        best: Match | None = None
        if interesting[i]:
            for row, value in zip(
                rows[starts[i] : starts[i + 1]].tolist(),
                score[starts[i] : starts[i + 1]].tolist(),
                strict=True,
            ):
                if row not in gone and (best is None or value > best[0]):
                    best = (value, 0, row)
            if meeting[i]:
                best = inside.match(i, prepared, best)
        if best is not None:
            fresh[i] = False
            matches.append((i, best))
        if best is None or policy == "keep":
            if meeting[i]:
                inside.add(i)
            if own[i] != MISSING:
                gone.add(int(own[i]))
    return np.nonzero(fresh)[0].astype(np.int64), _named(table, schema, prepared, matches)


def _named(
    table: Any, schema: Schema, prepared: Prepared, matches: list[tuple[int, Match]]
) -> list[Duplicate]:
    stored = [which for _, (_, kind, which) in matches if kind == 0]
    names = iter(_listed(keys_of(table, schema.key, np.array(stored, np.uint32))))
    return [
        Duplicate(prepared.keys.key(i), next(names) if kind == 0 else prepared.keys.key(which), score)
        for i, (score, kind, which) in matches
    ]


def _listed(keys: Any) -> list[Any]:
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


def _meeting(postings: U64, n: int) -> Any:
    """Return bool (n,): which records share a bucket with another one of the batch."""
    meeting = np.zeros(n, bool)
    for band in postings:
        keys = band >> np.uint64(32)
        equal = keys[1:] == keys[:-1]
        if equal.any():
            both = np.concatenate([equal, [False]]) | np.concatenate([[False], equal])
            meeting[(band[both] & np.uint64(0xFFFFFFFF)).astype(np.int64)] = True
    return meeting


class _Inside:
    """The earlier records of the batch, by bucket."""

    def __init__(self, search: Search, queries: Queries, bucket_keys: U64) -> None:
        self.threshold = search.threshold or 0.0
        self.field: Field = search.field
        self.queries = queries
        self.bucket_keys = bucket_keys
        self.buckets: dict[tuple[int, int], list[int]] = {}
        field = self.field
        self.least = (
            field.least_for(self.threshold, False) if field.is_exact else field.least_equal(self.threshold)
        )

    def add(self, i: int) -> None:
        for band, key in enumerate(self.bucket_keys[i].tolist()):
            self.buckets.setdefault((band, key), []).append(i)

    def match(self, i: int, prepared: Prepared, best: Match | None) -> Match | None:
        """Return the better of `best` and record i's best match among the earlier records."""
        if self.queries.states[i] < PRESENT:
            return best
        candidates: set[int] = set()
        for band, key in enumerate(self.bucket_keys[i].tolist()):
            candidates.update(self.buckets.get((band, key), ()))
        if not candidates:
            return best
        others = np.array(sorted(candidates), np.int64)
        signed = self.queries.signatures
        equal = kernels.count_equal(
            np.ascontiguousarray(signed[others]), signed[i], self.field.family.slot_bits // 8
        )
        others, equal = others[equal >= self.least], equal[equal >= self.least]
        order = np.argsort(-equal.astype(np.int64), kind="stable")[:_VERIFIED_AT_MOST]
        me = prepared.keys.key(i) if len(order) else None
        for at in order.tolist():
            other = int(others[at])
            score = self._score(i, other, int(equal[at]))
            better = (
                best is None or score > best[0] or (score == best[0] and best[1] == 1 and other < best[2])
            )
            if score >= self.threshold and better and prepared.keys.key(other) != me:
                best = (score, 1, other)
        return best

    def _score(self, i: int, other: int, equal: int) -> float:
        if not self.field.is_exact:
            return float(self.field.estimates[equal])
        a: U8 = self.queries.original(i)
        b: U8 = self.queries.original(other)
        return float(kernels.jaccard_packed(a, b))
