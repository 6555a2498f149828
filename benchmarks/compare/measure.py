"""Paired timing: both sides in turn, the median of the ratios. Machines drift; pairs do not."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Row:
    """One line of the table: what was done, each side's figure in `unit` (more is better if `rate`)."""

    lane: str
    case: str
    unit: str
    ours: float
    peers: dict[str, float]
    ratio: dict[str, float]  # ours over the peer's, so that above 1 we are ahead
    bar: str = ""  # what the project asks for
    note: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def paired(
    ours: Callable[[], Any], peers: dict[str, Callable[[], Any]], runs: int = 5, warm: bool = True
) -> tuple[float, dict[str, float], dict[str, float]]:
    """Return our median seconds, each peer's, and the median of each peer's ratios to ours."""
    if warm:
        ours()
        for work in peers.values():
            work()
    mine: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(runs):
        mine.append(seconds(ours))
        for name, work in peers.items():
            theirs[name].append(seconds(work))
    ratio = {n: statistics.median(t / m for t, m in zip(ts, mine, strict=True)) for n, ts in theirs.items()}
    return statistics.median(mine), {n: statistics.median(ts) for n, ts in theirs.items()}, ratio
