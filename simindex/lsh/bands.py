"""Bands: b groups of r slots; two items that agree in all slots of one band share its bucket."""

from typing import Any

from simindex import kernels
from simindex.errors import FeatureError, SchemaError, shown
from simindex.lsh import curves
from simindex.sketch import SlotFamily
from simindex.types import U8, U64


class Bands:
    """b bands of r slots of a signature. Band j is slots j*r to (j+1)*r - 1; the rest is unused.

    Keys are frozen as bands/1: an own 64-bit mix of the band's stored slot bytes, started with the band's
    number, so `check` recomputes them from signatures alone.
    """

    def __init__(self, bands: int, rows: int, family: SlotFamily) -> None:
        """Raises SchemaError unless bands and rows are positive integers and bands * rows <= family.k."""
        self.bands = _positive("bands", bands)
        self.rows = _positive("rows", rows)
        self.family = family
        if self.bands * self.rows > family.k:
            raise SchemaError(
                f"{bands} bands of {rows} rows need {bands * rows} slots, the signature has k = {family.k}: "
                f"at most {family.k // self.rows} bands of {rows} rows, "
                f"or {family.k // self.bands} rows in {bands} bands"
            )

    def __repr__(self) -> str:
        return f"Bands(bands={self.bands}, rows={self.rows}, family={self.family!r})"

    @property
    def keys_per_row(self) -> int:
        """Number of bucket keys a signature has: the bands."""
        return self.bands

    @property
    def params(self) -> dict[str, Any]:
        """{"bands": b, "rows": r}."""
        return {"bands": self.bands, "rows": self.rows}

    @property
    def unused(self) -> int:
        """Slots that are in no band; they still count in estimates."""
        return self.family.k - self.bands * self.rows

    def keys(self, signatures: U8) -> U64:
        """Return bucket keys: uint64, shape (n, bands). Postings store the upper 32 bits."""
        self._check(signatures)
        return kernels.band_keys(signatures, self.bands, self.rows, self.family.slot_bytes)

    def postings(self, signatures: U8, states: U8, first_row: int = 0) -> U64:
        """Return each band's sorted postings: uint64, shape (bands, m), m the rows with state >= PRESENT.

        A posting is (key >> 32) << 32 | (first_row + i).
        """
        self._check(signatures)
        return kernels.band_postings(
            signatures, states, self.bands, self.rows, self.family.slot_bytes, first_row
        )

    def candidate_probability(self, s: float) -> float:
        """Return P[two items of similarity s share a bucket] for independent slots.

        fastsim's slots of small sets are negatively correlated, which makes bands miss less often than this
        says.
        """
        return curves.candidate_probability(self.family_probability(s), self.bands, self.rows)

    def family_probability(self, s: float) -> float:
        """Return P[one slot is equal] at similarity s."""
        return self.family.slot_probability(s)

    def recall(self, s: float, min_equal: int) -> float:
        """Return a lower bound of P[shares a bucket and has min_equal equal slots] at similarity s.

        The product of both probabilities: each event only gets likelier with more equal slots, so they are
        positively correlated (Harris' inequality).
        """
        return self.candidate_probability(s) * self.family.pass_probability(s, min_equal)

    def _check(self, signatures: U8) -> None:
        if signatures.ndim != 2 or signatures.shape[1] != self.family.width:
            raise FeatureError(
                f"signatures of shape {signatures.shape}: {self.family!r} has {self.family.width} bytes a row"
            )


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise SchemaError(f"{name} is {shown(value)}, not an integer")
    number = int(value.__index__())
    if number < 1:
        raise SchemaError(f"{name} is {number}: at least 1")
    return number
