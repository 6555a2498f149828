"""Near-duplicates of a batch that is about to be written: of what is stored, and inside the batch.

The records are taken one after the other, in order, as if each were its own call: a record is compared with
what is stored then and with the earlier records that would be stored. It is never a duplicate of an older
version of itself.
"""

from typing import Any, Literal

import numpy as np

from simindex.errors import SchemaError
from simindex.index.batchpairs import BatchPairs
from simindex.index.executor import find
from simindex.index.field import check_fraction
from simindex.index.prepare import Prepared
from simindex.index.query import Queries
from simindex.index.records import keys_of
from simindex.index.request import Search, field_of
from simindex.index.results import Duplicate
from simindex.index.rows import MISSING, rows_of
from simindex.index.schema import Schema
from simindex.index.spelling import unknown
from simindex.types import I64

Policy = Literal["skip", "report", "keep"]
POLICIES = ("skip", "report", "keep")
Match = tuple[float, int, int]  # score, 0 = a stored row, 1 = a position in the batch, which


def duplicate_search(schema: Schema, policy: object, field: str | None, threshold: object) -> Search | None:
    """Return the search that finds duplicates, None without a policy. Raises SchemaError for settings that
    are wrong.
    """
    if policy is None:
        if field is not None or threshold is not None:
            raise SchemaError("field= and threshold= say what a duplicate is: give on_duplicate= too")
        return None
    if not isinstance(policy, str) or policy not in POLICIES:
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
    inside = BatchPairs(search.field, search.threshold or 0.0, queries, part.postings)
    fresh = np.ones(n, bool)
    gone: set[int] = set()  # stored rows that an accepted earlier record replaces
    accepted: set[int] = set()  # records that later ones are compared with
    matches: list[tuple[int, Match]] = []
    touched = np.nonzero(inside.involved | (np.diff(starts) > 0) | (own != MISSING))[0].tolist()
    for i in touched:
        stored = zip(
            rows[starts[i] : starts[i + 1]].tolist(), score[starts[i] : starts[i + 1]].tolist(), strict=True
        )
        near: list[Match] = [(value, 0, row) for row, value in stored if row not in gone]
        near += [(value, 1, j) for j, value in inside.earlier(i) if j in accepted]
        if near:
            me = prepared.keys.key(i)
            near = [match for match in near if match[1] == 0 or prepared.keys.key(match[2]) != me]
        if near:
            fresh[i] = False
            matches.append((i, min(near, key=_rank)))
        if not near or policy == "keep":
            accepted.add(i)
            inside.add(i)
            if own[i] != MISSING:
                gone.add(int(own[i]))
    return np.nonzero(fresh)[0].astype(np.int64), _named(table, schema, prepared, matches)


def _rank(match: Match) -> tuple[float, int, int]:
    """Best score first; then what is stored, then what came first."""
    return (-match[0], match[1], match[2])


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
