"""One result of a check."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a store that should not be.

    kind: one word: "checksum", "shape", "missing", "extra", "count" or "unknown"; where: the keyspace and the
    block; detail: what was found, and what was expected.
    """

    kind: str
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}: {self.detail}"
