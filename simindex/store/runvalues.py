"""Values that hold postings: deltas and segments."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from simindex.errors import CorruptStore
from simindex.kernels import block_bytes, fill_directory, seal
from simindex.store import layout
from simindex.types import U8, U64

_LIST_AT = layout.DELTA_FIELDS.size


def leaf_limit(txn: Any, db: Any) -> int:
    """Return a size from which every value lies on overflow pages of its own, where it does not move."""
    page_bytes: int = txn.stat(db)["psize"]
    return page_bytes // 2


def delta_bytes(counts: Sequence[int]) -> int:
    """Return the bytes of a delta with so many postings per band."""
    size = _LIST_AT + layout.DELTA_BAND.size * len(counts)
    return size + sum(-(-block_bytes(count) // 8) * 8 for count in counts)


class DeltaBuilder:
    """A delta in the making: each band's postings are written at `at`, then closed."""

    __slots__ = ("_bands", "_entries", "_run", "at", "data")

    def __init__(self, run: int, most: Sequence[int]) -> None:
        """most: the most postings of each band."""
        self.data: U8 = np.zeros(delta_bytes(most), np.uint8)
        self.at = _LIST_AT + layout.DELTA_BAND.size * len(most)
        self._bands = len(most)
        self._entries: list[tuple[int, int]] = []
        self._run = run

    def add(self, postings: U64) -> None:
        """Write and close the next band."""
        room = self.data[self.at : self.at + 8 * len(postings)].view("<u8")
        room[:] = postings
        self.close(len(postings))

    def close(self, count: int) -> None:
        """The next band has `count` postings, which are written."""
        self._entries.append((self.at, count))
        self.at = -(-fill_directory(self.data, self.at, count) // 8) * 8

    def value(self) -> memoryview:
        """Return the finished bytes."""
        data = self.data[: self.at]
        view = data.data
        layout.DELTA_FIELDS.pack_into(view, 0, layout.DELTA_MAGIC, 0, self._run, self._bands)
        for band, entry in enumerate(self._entries):
            layout.DELTA_BAND.pack_into(view, _LIST_AT + layout.DELTA_BAND.size * band, *entry)
        seal(data)
        return view


def delta_bands(value: Any, run: int, bands: int) -> list[tuple[int, int]]:
    """Return (offset, count) of each band's block. CorruptStore when they cannot be."""
    start = _LIST_AT + layout.DELTA_BAND.size * bands
    if len(value) < start or layout.DELTA_FIELDS.unpack_from(value)[::2] != (layout.DELTA_MAGIC, run):
        raise CorruptStore(f"delta {run} is not one: run check")
    entries = list(layout.DELTA_BAND.iter_unpack(value[_LIST_AT:start]))
    for offset, count in entries:
        if offset < start or offset + block_bytes(count) > len(value):
            raise CorruptStore(f"delta {run}: a block of {count} postings at {offset} of {len(value)} bytes")
    return entries


def delta_postings(value: Any, run: int, bands: int) -> list[U64]:
    """Return the postings of each band, as views."""
    return [np.frombuffer(value, "<u8", count, offset) for offset, count in delta_bands(value, run, bands)]


def close_segment(data: U8, run: int, band: int, count: int) -> memoryview:
    """Return the finished segment; its postings lie in `data` at SEGMENT_HEADER already."""
    end = fill_directory(data, layout.SEGMENT_HEADER, count)
    value = data[:end]
    value[: layout.SEGMENT_HEADER] = 0
    postings = value[layout.SEGMENT_HEADER : layout.SEGMENT_HEADER + 8 * count].view("<u8")
    layout.SEGMENT_FIELDS.pack_into(
        value.data, 0, layout.SEGMENT_MAGIC, 0, run, band, 0, count, 0, int(postings[0]), int(postings[-1])
    )
    seal(value)
    return value.data


def segment_count(value: Any, run: int, band: int) -> int:
    """Return how many postings a segment holds. CorruptStore when that cannot be."""
    if len(value) >= layout.SEGMENT_HEADER:
        magic, _, its_run, its_band, _, count, _, _, _ = layout.SEGMENT_FIELDS.unpack_from(value)
        fits = layout.SEGMENT_HEADER + block_bytes(count) <= len(value)
        if (magic, its_run, its_band, fits) == (layout.SEGMENT_MAGIC, run, band, True):
            return int(count)
    raise CorruptStore(f"segment of run {run}, band {band} is not one: run check")
