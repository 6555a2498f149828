"""What every scheme of bucket keys offers: bands now; chunks and tables are others of the same form."""

from typing import Any, Protocol, runtime_checkable

from simindex.types import U8, U64


@runtime_checkable
class Scheme(Protocol):
    """Turns signatures into bucket keys; two items are candidates of each other if they share one."""

    @property
    def keys_per_row(self) -> int:
        """How many bucket keys (bands, chunks, tables) a signature has."""

    @property
    def params(self) -> dict[str, Any]:
        """The settings that make the keys; JSON values only."""

    def keys(self, signatures: U8) -> U64:
        """Return bucket keys: uint64, shape (n, keys_per_row). Postings store their upper 32 bits."""

    def postings(self, signatures: U8, states: U8, first_row: int = 0) -> U64:
        """Return sorted postings: uint64, shape (keys_per_row, m), of the m rows with state >= PRESENT."""

    def candidate_probability(self, s: float) -> float:
        """Return P[two items of similarity (or distance) s share a bucket]."""
