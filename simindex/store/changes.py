"""The change log of a collection: which blocks below the tails changed or went, in its last commits.

Appends touch only tails, which readers refetch anyway. Clearing a live bit changes a live block in place, and
freeing takes a block away: both are logged, so that a reader whose tables are a few commits old refreshes
only those entries. The log is one page; entries that no longer fit are forgotten, and a reader older than
`floor` starts anew.
"""

import struct

import numpy as np

from simindex.errors import CorruptStore
from simindex.store import layout
from simindex.store.collection import check, checked
from simindex.types import U32

_HEADER = struct.Struct("<II")


class ChangeLog:
    """floor: entries of changes up to this one may be missing. entries: uint32, shape (n, 3): change, space,
    block."""

    __slots__ = ("entries", "floor")

    def __init__(self, floor: int, entries: U32) -> None:
        self.floor = floor
        self.entries = entries

    @classmethod
    def decode(cls, value: bytes | memoryview | None) -> "ChangeLog":
        if value is None:
            return cls(0, np.empty((0, 3), np.uint32))
        body = check(value, layout.CHANGES_MAGIC, "change log")
        if len(body) < _HEADER.size:
            raise CorruptStore("change log: no room for its header")
        floor, count = _HEADER.unpack_from(body)
        if len(body) != _HEADER.size + count * layout.CHANGES_ENTRY:
            raise CorruptStore(f"change log: {len(body)} bytes for {count} entries")
        entries = np.frombuffer(body, "<u4", offset=_HEADER.size).astype(np.uint32).reshape(-1, 3)
        return cls(floor, entries)

    def encode(self) -> bytes:
        body = _HEADER.pack(self.floor, len(self.entries)) + self.entries.astype("<u4").tobytes()
        return checked(layout.CHANGES_MAGIC, body)

    def add(self, change: int, blocks: dict[int, list[int]]) -> "ChangeLog":
        """Return the log with what commit number `change` did: space -> blocks."""
        new = [(change, space, block) for space, numbers in blocks.items() for block in numbers]
        entries = np.concatenate([self.entries, np.array(new, np.uint32).reshape(-1, 3)])
        floor = self.floor
        if len(entries) > layout.CHANGES_MOST:
            floor = int(entries[-layout.CHANGES_MOST - 1, 0])  # a change is remembered whole or not at all
            entries = entries[entries[:, 0] > floor]
        return ChangeLog(floor, entries)

    def since(self, change: int, space: int) -> U32 | None:
        """Return the blocks of `space` that changed after commit `change`; None when that is forgotten."""
        if change < self.floor:
            return None
        e = self.entries
        blocks: U32 = e[(e[:, 0] > change) & (e[:, 1] == space), 2]
        return blocks
