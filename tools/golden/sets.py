"""Golden bytes of packed sets: made by the plain twin, so that two codes agree on them."""

import numpy as np

from simindex.kernels.reference import sets as twin

SIZES = [0, 1, 2, 3, 7, 20, 63, 64, 65, 200, 1000]


def hashes() -> list[int]:
    """Return hashes made by whole-number arithmetic: no random generator is part of the frozen bytes."""
    top = 2**64 - 1
    mixed = (i * 0x9E3779B97F4A7C15 ^ (i * i * 0xD1342543DE82EF95 >> 7) for i in range(1, sum(SIZES) + 1))
    return [x * 0xBF58476D1CE4E5B9 & top for x in mixed]


def files() -> dict[str, bytes]:
    ptr = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64)
    return {"packed_sets_1.bin": b"".join(twin.pack_sets(np.array(hashes(), np.uint64), ptr))}
