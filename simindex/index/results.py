"""What searches and writes return: hits, batches of hits, reports."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from simindex.index.keys import Key
from simindex.types import F64, I64, U64


class Hit(NamedTuple):
    """One answer of a search.

    score: the measure's own value (Jaccard: 0 to 1, higher is more alike). exact: True when score is the true
    value; then low == high == score. Otherwise score is estimated from signatures and low..high is its 95 %
    interval. attributes: what the item carries beside its fields (a dict, {} when nothing).
    """

    key: Key
    score: float
    low: float
    high: float
    exact: bool
    attributes: dict[str, Any]


class Hits(list[Hit]):
    """A list of Hit, best first, then by key.

    truncated: `budget=` stopped the search before all candidates were seen. tie_cut: `k=` cut among equal
    scores, so others score as well as the last hit. plan: "scan" or "buckets". measure: what score means.
    """

    __slots__ = ("measure", "plan", "tie_cut", "truncated")

    def __init__(
        self,
        hits: Iterable[Hit] = (),
        *,
        plan: str = "buckets",
        truncated: bool = False,
        tie_cut: bool = False,
        measure: str = "jaccard",
    ) -> None:
        super().__init__(hits)
        self.plan = plan
        self.truncated = truncated
        self.tie_cut = tie_cut
        self.measure = measure

    def to_arrow(self) -> Any:
        """Return a pyarrow Table with columns key, score, low, high, exact (needs the extra `arrow`)."""
        pa = _arrow()
        columns = list(zip(*self, strict=True)) if self else [(), (), (), (), (), ()]
        return pa.table(
            {
                "key": _arrow_keys(pa, list(columns[0])),
                "score": pa.array(columns[1], pa.float64()),
                "low": pa.array(columns[2], pa.float64()),
                "high": pa.array(columns[3], pa.float64()),
                "exact": pa.array(columns[4], pa.bool_()),
            }
        )


@dataclass(frozen=True)
class BatchHits:
    """The hits of many queries in arrays: those of query i are keys[offsets[i]:offsets[i + 1]], best first,
    then by key.

    offsets: int64 (n + 1,). keys: uint64 array for int keys, else a list of str or bytes. score, low, high:
    float64. exact: whether scores are true values (then low and high equal score). truncated, tie_cut: bool
    (n,), as in Hits. plan: "scan" or "buckets". measure: what score means. batch[i] is [(key, score), ...] of
    query i, len() the number of queries. Attributes are not read: collection.get(key) does.
    """

    offsets: I64
    keys: U64 | list[str] | list[bytes]
    score: F64
    low: F64
    high: F64
    exact: bool
    plan: str
    truncated: np.ndarray[Any, np.dtype[np.bool_]]
    tie_cut: np.ndarray[Any, np.dtype[np.bool_]]
    measure: str = "jaccard"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def scores(self) -> F64:
        """The same array as `score`: one score a hit."""
        return self.score

    @property
    def query(self) -> I64:
        """The query number of each hit, int64."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    def __getitem__(self, i: int) -> list[tuple[Key, float]]:
        """Return [(key, score), ...] of query i."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"query {i} of {len(self)}")
        i %= len(self)
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        keys = self.keys[a:b]
        plain: list[Any] = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
        return list(zip(plain, self.score[a:b].tolist(), strict=True))

    def __iter__(self) -> Iterator[list[tuple[Key, float]]]:
        return (self[i] for i in range(len(self)))

    def to_arrow(self) -> Any:
        """Return a pyarrow Table with columns query, key, score, low, high (needs the extra `arrow`)."""
        pa = _arrow()
        keys = pa.array(self.keys) if isinstance(self.keys, np.ndarray) else _arrow_keys(pa, self.keys)
        return pa.table(
            {"query": self.query, "key": keys, "score": self.score, "low": self.low, "high": self.high}
        )


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("to_arrow needs pyarrow: install simindex[arrow]") from error
    return pyarrow


def _arrow_keys(pa: Any, keys: Sequence[Any]) -> Any:
    if not keys:
        return pa.array([], pa.string())
    if isinstance(keys[0], int):
        return pa.array(keys, pa.uint64())
    if isinstance(keys[0], str):
        try:
            return pa.array(keys, pa.string())
        except (
            UnicodeEncodeError
        ):  # a lone surrogate has no UTF-8: such keys leave as their surrogatepass bytes
            return pa.array([key.encode("utf-8", "surrogatepass") for key in keys], pa.binary())
    return pa.array(keys, pa.binary())


class Duplicate(NamedTuple):
    """A record that is a near-duplicate of another: the best other item, by score, then the one that came
    first.
    """

    key: Key
    other: Key
    score: float


class Reject(NamedTuple):
    """A record that was refused: its position in the input (from 0), its key if it had one, and why."""

    position: int
    key: Any
    error: str


@dataclass
class PutReport:
    """What put_many did. Every record is counted once in inserted, replaced, unchanged or skipped, or is in
    rejects.

    inserted: new keys. replaced: keys that were stored with other content (a key given twice in a batch
    counts here for its earlier records). unchanged: stored already, exactly so; nothing was written. skipped:
    not stored because of `on_duplicate`. empty, shortened: records with at least one field that has no
    features, or less than one shingle. duplicates: with on_duplicate, each near-duplicate and its best match.
    rejects: with on_error="skip", the bad records and why.
    """

    inserted: int = 0
    replaced: int = 0
    unchanged: int = 0
    skipped: int = 0
    empty: int = 0
    shortened: int = 0
    duplicates: list[Duplicate] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)

    @property
    def stored(self) -> int:
        """Records whose content is in the store now because of this call."""
        return self.inserted + self.replaced

    def add(self, other: "PutReport") -> None:
        """Add another report's counts and lists to this one."""
        for name in ("inserted", "replaced", "unchanged", "skipped", "empty", "shortened"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.duplicates += other.duplicates
        self.rejects += other.rejects
