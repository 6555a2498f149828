"""Compaction."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Compaction:
    path: str


def compact(store: Any) -> Compaction:
    return Compaction("")
