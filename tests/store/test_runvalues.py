"""The bytes of postings are frozen, and read back as they were written."""

from collections.abc import Callable

import numpy as np
import pytest

from simindex.errors import CorruptStore
from simindex.kernels import is_sealed, seal, sort_postings
from simindex.store import layout
from simindex.store.manifest import DELTA, SEGMENTS, Job, Manifest, segment_capacity
from simindex.store.runvalues import DeltaBuilder, close_segment, delta_postings, segment_count


def postings(seed: int, n: int) -> np.ndarray:
    keys = [(seed * 1_000_003 + i * i * 0x9E3779B97F4A7C15) % 2**64 for i in range(n)]
    return sort_postings(np.array(keys, np.uint64), None, 100 * seed)


def test_a_delta_has_its_frozen_bytes(golden: Callable[[str], bytes]) -> None:
    frozen = golden("postings_delta_1.bin")
    builder = DeltaBuilder(7, [40, 0, 1])
    for band, n in enumerate((40, 0, 1)):
        builder.add(postings(band, n))
    assert bytes(builder.value()) == frozen
    read = delta_postings(frozen, 7, 3)
    assert [band.tolist() for band in read] == [postings(i, n).tolist() for i, n in enumerate((40, 0, 1))]
    with pytest.raises(CorruptStore, match="delta 8"):
        delta_postings(frozen, 8, 3)
    with pytest.raises(CorruptStore, match="delta 7"):
        delta_postings(frozen[:100], 7, 3)


def test_a_segment_has_its_frozen_bytes(golden: Callable[[str], bytes]) -> None:
    frozen = golden("postings_segment_1.bin")
    values = postings(9, 333)
    data = np.zeros(8192, np.uint8)
    data[layout.SEGMENT_HEADER : layout.SEGMENT_HEADER + 8 * len(values)].view("<u8")[:] = values
    assert bytes(close_segment(data, 11, 2, len(values))) == frozen
    assert segment_count(frozen, 11, 2) == 333
    with pytest.raises(CorruptStore, match="run 11, band 3"):
        segment_count(frozen, 11, 3)


def test_a_manifest_has_its_frozen_bytes(golden: Callable[[str], bytes]) -> None:
    frozen = golden("postings_manifest_1.bin")
    manifest = Manifest.decode(frozen, 3)
    assert manifest.encode() == frozen
    assert (manifest.segment_bytes, manifest.next_run) == (262_128, 8)
    runs = [(run.number, run.kind, run.count, run.dead, run.changed) for run in manifest.runs.values()]
    assert runs == [(5, DELTA, 41, 13, 77), (6, SEGMENTS, 9999, 3333, 77), (7, SEGMENTS, 12, 4, 77)]
    assert manifest.jobs == [Job(1, 7, 2, 0x1234567890ABCDEF, -5, 600, [5, 6])]
    with pytest.raises(CorruptStore, match="of 3 bands, not 4"):
        Manifest.decode(frozen, 4)
    with pytest.raises(CorruptStore, match="checksum"):
        Manifest.decode(frozen[:-1], 3)


@pytest.mark.parametrize("segment_bytes", [4080, layout.pages(16), layout.SEGMENT_BYTES, layout.pages(256)])
def test_a_full_segment_fills_its_pages_and_no_more(segment_bytes: int) -> None:
    count = segment_capacity(segment_bytes)
    data = np.zeros(segment_bytes, np.uint8)
    values = np.arange(count, dtype=np.uint64) << np.uint64(30)
    data[layout.SEGMENT_HEADER : layout.SEGMENT_HEADER + 8 * count].view("<u8")[:] = values
    value = close_segment(data, 1, 0, count)
    assert segment_bytes - 12 <= len(value) <= segment_bytes
    assert is_sealed(value)
    damaged = bytearray(value)
    damaged[-1] ^= 1
    assert not is_sealed(damaged)
    seal(damaged)
    assert is_sealed(damaged)
