"""The part that families of slots share: width, statistics, ready signatures."""

from typing import Any, ClassVar, Literal, overload

import numpy as np

from simindex.errors import FeatureError
from simindex.sketch.family import JACCARD, Measure, Params
from simindex.sketch.slots import Agreement
from simindex.types import F64, PRESENT, U8, U16, Array, Features


class Slotted:
    """k slots of `slot_bits` bits each, little-endian, compared slot by slot. Subclasses add `sign`."""

    name: ClassVar[str]
    measure: ClassVar[Measure] = JACCARD
    scheme: ClassVar[Literal["bands", "chunks", "tables"]] = "bands"

    def __init__(self, params: Params, k: int, slot_bits: int) -> None:
        self._params = params
        self._agreement = Agreement(k, slot_bits)
        self.k = k
        self.slot_bits = slot_bits
        self.slot_bytes = slot_bits // 8
        self.width = k * slot_bits // 8

    @property
    def params(self) -> Params:
        """All parameters, defaults filled in; JSON values only."""
        return dict(self._params)

    def __repr__(self) -> str:
        return f"family({self.name!r}, {self._params!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and (self.name, self._params) == (other.name, other._params)

    def __hash__(self) -> int:
        return hash((self.name, tuple(sorted(self._params.items()))))

    def slot_probability(self, s: float) -> float:
        """Return P[a slot is equal] at similarity s: s + (1 - s) / 2^slot_bits."""
        return self._agreement.probability(s)

    @overload
    def estimate(self, equal: int) -> float: ...
    @overload
    def estimate(self, equal: U16) -> F64: ...
    def estimate(self, equal: int | U16) -> float | F64:
        """Return the Jaccard similarity estimated from numbers of equal slots (sketch/slots.py), 0 to 1."""
        return self._agreement.estimate(equal)

    @overload
    def interval(self, equal: int, confidence: float = 0.95) -> tuple[float, float]: ...
    @overload
    def interval(self, equal: U16, confidence: float = 0.95) -> tuple[F64, F64]: ...
    def interval(self, equal: int | U16, confidence: float = 0.95) -> tuple[float | F64, float | F64]:
        """Return (low, high) around the estimate: Wilson's score interval (sketch/slots.py)."""
        return self._agreement.interval(equal, confidence)

    def min_equal(self, threshold: float, sigmas: float = 3.0) -> int:
        """Return the equal slots below which a candidate for `threshold` is discarded; k for threshold 1."""
        return self._agreement.min_equal(threshold, sigmas)

    def pass_probability(self, s: float, min_equal: int) -> float:
        """Return P[equal >= min_equal] at similarity s; a lower bound for filters (sketch/slots.py)."""
        return self._agreement.pass_probability(s, min_equal)

    def accept(self, signatures: Array) -> U8:
        """Return ready signatures of this family as uint8, shape (n, width).

        signatures: uint8 of shape (n, width), or one unsigned integer of slot_bits bits per slot, shape (n,
        k).
        Raises FeatureError for any other shape or dtype: another width is another family.
        """
        array = np.asarray(signatures)
        if array.ndim != 2:
            raise FeatureError(
                f"signatures have {array.ndim} dimensions: {self!r} takes items by slots or bytes"
            )
        if array.dtype == np.uint8 and array.shape[1] == self.width:
            return np.ascontiguousarray(array)
        if array.dtype.kind == "u" and array.dtype.itemsize == self.slot_bytes and array.shape[1] == self.k:
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            return little.view(np.uint8).reshape(len(array), self.width)
        raise FeatureError(
            f"signatures are {array.dtype} with {array.shape[1]} columns: {self!r} takes uint8 with "
            f"{self.width} or uint{self.slot_bits} with {self.k}"
        )


def check_states(features: Features) -> None:
    """Raise FeatureError where states and features contradict each other."""
    counts = np.diff(features.ptr)
    if len(counts) != len(features.state):
        raise FeatureError(f"{len(features.state)} states for {len(counts)} items")
    wrong = np.flatnonzero((counts > 0) != (features.state >= PRESENT))
    if len(wrong):
        i: Any = wrong[0]
        raise FeatureError(
            f"item {i} has state {features.state[i]} and {counts[i]} features: only states of "
            f"{PRESENT} and more have features"
        )
