"""Golden bytes of the postings: a delta, a segment, a manifest."""

import numpy as np

from simindex.kernels import sort_postings
from simindex.store import layout
from simindex.store.manifest import DELTA, SEGMENTS, Job, Manifest
from simindex.store.runvalues import DeltaBuilder, close_segment


def postings(seed: int, n: int) -> np.ndarray:
    """Return n postings that depend on nothing but the arguments."""
    keys = [(seed * 1_000_003 + i * i * 0x9E3779B97F4A7C15) % 2**64 for i in range(n)]
    return sort_postings(np.array(keys, np.uint64), None, 100 * seed)


def files() -> dict[str, bytes]:
    """Return name -> contents."""
    delta = DeltaBuilder(7, [40, 0, 1])
    for band, n in enumerate((40, 0, 1)):
        delta.add(postings(band, n))
    data = np.zeros(layout.SEGMENT_BYTES, np.uint8)
    values = postings(9, 333)
    data[layout.SEGMENT_HEADER : layout.SEGMENT_HEADER + 8 * len(values)].view("<u8")[:] = values
    segment = close_segment(data, 11, 2, len(values))
    manifest = Manifest(3)
    manifest.next_run = 5
    for kind, count in ((DELTA, 41), (SEGMENTS, 9999), (SEGMENTS, 12)):
        manifest.new_run(kind, count, 77).dead = count // 3
    manifest.jobs.append(Job(1, 7, 2, 0x1234567890ABCDEF, -5, 600, [5, 6]))
    return {
        "postings_delta_1.bin": bytes(delta.value()),
        "postings_segment_1.bin": bytes(segment),
        "postings_manifest_1.bin": manifest.encode(),
    }
