"""How a search is answered: by buckets or by a scan, and what that promises."""

from dataclasses import dataclass

from simindex.index.field import Field
from simindex.index.request import Search

SMALL = 10_000  # below this many items everything is scanned: nothing is missed, and it costs little
_SCAN_BYTES_PER_S = 20e9
_LOOKUP_S = 0.6e-6  # one bucket key, warm
_CHECK_S = 0.15e-6  # one candidate's signature


@dataclass(frozen=True, slots=True)
class Plan:
    """kind: "scan" or "buckets". least: fewest equal slots of a row worth a closer look, given the search's
    threshold (None without one). complete: nothing is missed (up to a chance of 1e-9 for a pair at the
    threshold). reason: why this plan.
    """

    kind: str
    least: int
    complete: bool
    reason: str


def choose_plan(search: Search, live: int) -> Plan:
    """Return the plan of a search over a collection of `live` items."""
    kind, complete, reason = _kind(search, live)
    return Plan(kind, least_of(search, complete), complete, reason)


def _kind(search: Search, live: int) -> tuple[str, bool, str]:
    field, threshold = search.field, search.threshold
    if search.exact:
        return "scan", True, "exact=True: nothing may be missed"
    small = live < SMALL
    if search.plan is not None:
        return search.plan, small and search.plan == "scan", f"plan={search.plan!r} was asked for"
    if small:
        return "scan", True, f"below {SMALL:,} items a scan costs less and misses nothing"
    if threshold is None:
        return "scan", False, "k without a threshold compares with every item"
    if threshold < field.threshold:
        return "scan", False, f"the buckets are made for thresholds of {field.threshold:g} and more"
    if search.recall is not None and _found(field, threshold, search.accept) < search.recall:
        return "scan", False, f"the buckets' expected recall is below recall={search.recall:g}"
    return "buckets", False, f"the buckets are made for thresholds of {field.threshold:g} and more"


def least_of(search: Search, complete: bool) -> int:
    """Return the fewest equal slots that a candidate must have for the search's threshold."""
    if search.threshold is None:
        return 0
    if not search.field.is_exact:
        return search.field.least_equal(search.threshold, search.accept)
    return search.field.least_for(search.threshold, complete)


def _found(field: Field, threshold: float, accept: str) -> float:
    return field.expected_recall(threshold, threshold, accept)


def expected_candidates(field: Field, live: int) -> float:
    """Return how many unrelated items a query meets in buckets by the chance of equal 32-bit bucket keys and
    slots.
    """
    by_slots = field.bucket_probability(0.0)
    by_keys = field.bands / 2**32
    return float(live * min(1.0, by_slots + by_keys))


def expected_seconds(field: Field, kind: str, live: int) -> float:
    """Return a rough time for one query in seconds, data in memory."""
    if kind == "scan":
        return float(live * field.family.width) / _SCAN_BYTES_PER_S
    return field.bands * _LOOKUP_S + expected_candidates(field, live) * _CHECK_S
