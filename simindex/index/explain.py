"""What a search would do and what it promises, as data and in words."""

from dataclasses import dataclass

from simindex.index.planner import SMALL, choose_plan, expected_candidates, expected_seconds
from simindex.index.request import Search


@dataclass(frozen=True)
class Explanation:
    """plan: "scan" or "buckets", for `reason`. bands, rows: of the field's buckets. items: of the collection.

    candidate_recall: expected share of the pairs at the threshold that become candidates (None for k alone).
    recall: expected share that become hits; with verify="estimate" this is lower, for half of the pairs at
    the threshold are estimated below it. table: [(similarity, expected recall)]. candidates: unrelated items
    that a query meets by chance, at least. seconds: a rough cost with the data in memory.
    """

    field: str
    measure: str
    threshold: float | None
    k: int | None
    plan: str
    reason: str
    bands: int
    rows: int
    verify: str
    complete: bool
    candidate_recall: float | None
    recall: float | None
    table: list[tuple[float, float]]
    candidates: float
    seconds: float
    items: int

    def __str__(self) -> str:
        goal = [] if self.threshold is None else [f"{self.measure} >= {self.threshold:g}"]
        goal += [] if self.k is None else [f"the {self.k} best"]
        lines = [
            f"search {self.field}: {' and '.join(goal)}, verify={self.verify}, {self.items:,} items",
            f"plan: {self.plan} ({self.reason})",
        ]
        if self.plan == "buckets":
            lines.append(f"buckets: {self.bands} bands of {self.rows} rows")
        if self.recall is not None:
            lines.append(
                f"expected recall at the threshold: {self.recall:.4f} "
                f"(candidates: {self.candidate_recall:.4f})"
            )
            lines.append("expected recall: " + ", ".join(f"{r:.4f} at {s:g}" for s, r in self.table))
        else:
            lines.append(
                "guarantee: no better item is left out, but for signature errors "
                + ("below a chance of 1e-9" if self.complete else "of more than 3 standard errors")
            )
        lines.append(
            f"expected candidates by chance: {self.candidates:.1f}; about {self.seconds * 1e6:.0f} us"
        )
        return "\n".join(lines)


def explain(search: Search, live: int) -> Explanation:
    """Return what the search would do on a collection of `live` items."""
    plan, field = choose_plan(search, live), search.field
    at = search.threshold
    candidate = found = None
    table: list[tuple[float, float]] = []
    if at is not None:
        points = [s for s in (round(at + d, 10) for d in (0.0, 0.05, 0.1)) if s <= 1.0]
        table = [(s, _recall(search, plan.kind, plan.least, s)) for s in points]
        found = table[0][1]
        candidate = field.bucket_probability(at) if plan.kind == "buckets" else 1.0
        if field.is_exact:
            candidate *= float(field.family.pass_probability(at, plan.least))
    met = float(live) if plan.kind == "scan" else expected_candidates(field, live)
    return Explanation(
        search.name, field.measure, at, search.k, plan.kind, plan.reason, field.bands, field.rows,
        field.verify, plan.complete or (live < SMALL and plan.kind == "scan"), candidate, found, table, met,
        expected_seconds(field, plan.kind, live), live,
    )  # fmt: skip


def _recall(search: Search, kind: str, least: int, s: float) -> float:
    meets = search.field.bucket_probability(s) if kind == "buckets" else 1.0
    return meets * float(search.field.family.pass_probability(s, least))
