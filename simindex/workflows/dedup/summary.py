"""What a run found, as plain data and in words."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SampledRecall:
    """How many of the true links of sampled items the buckets would find.

    items: how many were sampled; pairs: links at or above the threshold that a full scan found; found:
        those that
    share a bucket and pass the signature filter. recall = found / pairs, with its 95 % interval (Wilson,
    over pairs).
    """

    items: int
    pairs: int
    found: int
    recall: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one run.

    items: records read; kept: survivors; duplicates: items that were dropped.

    absent: items without the field (or null); empty: with a text but no features; shortened: shorter than one
    shingle; all three are kept. rejected: bad records left out. clusters: of two or more items.
    lowest_score: the
    least score of a dropped item to its kept one, lowest_item its record number (known with --clusters).
    expected_recall: the chance that a pair exactly at the threshold is linked. sampled: measured, None
        if not asked.
    cut: pairs left out in huge buckets. bytes: of input; seconds: wall time of this run.
    """

    output: str
    items: int
    kept: int
    duplicates: int
    clusters: int
    largest_cluster: int
    absent: int
    empty: int
    shortened: int
    rejected: int
    threshold: float
    verify: str
    bands: int
    rows: int
    expected_recall: float
    sampled: SampledRecall | None
    cut: int
    lowest_score: float | None
    lowest_item: int | None
    bytes: int
    seconds: float
    mb_per_s: float
    resumed_at: int

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """Return (what, figure) in the order of reading."""
        share = f" ({100 * self.duplicates / self.items:.1f} %)" if self.items else ""
        out = [
            ("items", f"{self.items:,}"),
            ("duplicates", f"{self.duplicates:,}{share}"),
            ("kept", f"{self.kept:,}"),
            ("clusters", f"{self.clusters:,}, the largest of {self.largest_cluster:,} items"),
        ]
        if self.absent:
            out.append(("without text", f"{self.absent:,} (kept)"))
        out.append(("empty", f"{self.empty:,} (kept, match nothing)"))
        out.append(("shortened", f"{self.shortened:,} (shorter than one shingle: compared as a whole)"))
        if self.rejected:
            out.append(("rejected", f"{self.rejected:,} bad records left out"))
        out.append(
            (
                "expected recall",
                f"{self.expected_recall:.4f} of pairs at {self.threshold:g} "
                f"({self.bands} bands of {self.rows} rows, verify {self.verify})",
            )
        )
        if self.sampled is not None:
            out.append(("sampled recall", _sampled(self.sampled)))
        if self.cut:
            out.append(("left out", f"{self.cut:,} pairs in huge buckets of unlike items"))
        if self.lowest_score is not None:
            out.append(
                (
                    "lowest score",
                    f"{self.lowest_score:.3f} of item {self.lowest_item} to its kept one",
                )
            )
        if self.resumed_at:
            out.append(("resumed", f"went on after {self.resumed_at:,} items"))
        out.append(("speed", f"{self.mb_per_s:.1f} MB/s: {self.bytes / 1e6:.1f} MB in {self.seconds:.2f} s"))
        return out


def _sampled(sampled: SampledRecall) -> str:
    if sampled.recall is None:
        return f"no pair at the threshold among {sampled.items:,} sampled items"
    return (
        f"{sampled.recall:.4f} ({sampled.found:,} of {sampled.pairs:,} pairs "
        f"of {sampled.items:,} sampled items; 95 % interval {sampled.low:.4f} to {sampled.high:.4f})"
    )
