"""The short way of a single search by buckets: one kernel call on what earlier searches fetched.

Most searches of a settled collection end here. Whatever it cannot do (a block that was not fetched, a scan,
another family) it leaves to the long way, which answers the same.
"""

from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np

from simindex import kernels
from simindex.index.field import Field
from simindex.index.planner import SMALL
from simindex.index.request import Search
from simindex.index.results import Hit, Hits
from simindex.index.schema import Schema
from simindex.index.values import column_features
from simindex.types import PRESENT, U8, U64

_NO_HASHES = np.zeros(0, np.uint64)
_PLAIN = (str, bytes, list, tuple, set, frozenset, np.ndarray)
_new_hit = Hit._make


class Finders:
    """The kernels' view of a collection's fields, kept from search to search while nothing is written."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[str, tuple[Any, kernels.Finder]] = {}

    def search(self, table: Any, search: Search, query: tuple[U64, U8 | None]) -> Hits | None:
        """Return the hits of a query (one_query), or None where the long way must be gone."""
        field, threshold = search.field, search.threshold
        if threshold is None or search.exact or search.budget is not None or search.recall is not None:
            return None
        small = search.plan is None and (table.state.live < SMALL or threshold < field.threshold)
        if small or search.plan == "scan":
            return None
        if field.family_name != "fastsim/1" or table.state.live == 0:
            return None
        known = self._known.get(search.name)
        if known is None or known[0] is not table.view:
            known = self._known[search.name] = (table.view, self._make(table, search.name, field))
        if field.is_exact:
            least = field.least_for(threshold, False)
        else:
            least = field.least_equal(threshold, search.accept)
        found = known[1].find(query[0], least, threshold, query[1])
        return None if found is None else _hits(field, found, search.k)

    def _make(self, table: Any, name: str, field: Field) -> kernels.Finder:
        number = self._schema.numbers[name]
        signatures, records = table.signatures(number), table.records
        originals: tuple[Any, ...] = ()
        if field.is_exact:
            heap = table.originals(number)
            originals = (heap.first_rows, heap.addresses)
        return kernels.Finder(
            table.runs(number),
            table.live,
            signatures.addresses,
            signatures.rows_per_block,
            signatures.header,
            signatures.width,
            field.family.slot_bits // 8,
            field.bands,
            field.rows,
            records.first_rows,
            records.addresses,
            *originals,
        )


def one_query(field: Field, value: Any) -> tuple[U64, U8 | None] | None:
    """Return (hashes, None) or (no hashes, signature) of a value to search for; None if it has no features.

    Raises FeatureError.
    """
    if field.text is not None and isinstance(value, str | bytes):
        raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        offsets = np.array([0, len(raw)], np.int64)
        hashes, _, state = kernels.shingle_texts(np.frombuffer(raw, np.uint8), offsets, *field.text_arguments)
        return (hashes, None) if state[0] >= PRESENT else None
    features = column_features(field, [value], 1)
    if isinstance(features, tuple):
        return (_NO_HASHES, features[0][0]) if features[1][0] >= PRESENT else None
    return (features.hashes, None) if features.state[0] >= PRESENT else None


def read_once(value: Any) -> Any:
    """Return an iterator as a list, anything else as it is: a value may be looked at twice."""
    return list(value) if not isinstance(value, _PLAIN) and isinstance(value, Iterator) else value


def _hits(field: Field, found: list[tuple[Any, float, int, bytes | None]], k: int | None) -> Hits:
    exact = field.is_exact
    hits = []
    low, high = field.intervals
    score = field.estimates
    for key, jaccard, equal, packed in found:
        attributes = (
            {}
            if packed is None
            else msgpack.unpackb(packed, raw=False, strict_map_key=False, unicode_errors="surrogatepass")
        )
        if exact:
            hits.append(_new_hit((key, jaccard, jaccard, jaccard, True, attributes)))
        else:
            hits.append(
                _new_hit((key, float(score[equal]), float(low[equal]), float(high[equal]), False, attributes))
            )
    if len(hits) > 1:
        hits.sort(key=_rank)
    if k is None or len(hits) <= k:
        return Hits(hits, plan="buckets")
    return Hits(hits[:k], plan="buckets", tie_cut=hits[k - 1].score == hits[k].score)


def _rank(hit: Hit) -> tuple[float, Any]:
    return (-hit.score, hit.key)
