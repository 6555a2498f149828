"""Golden bytes of signatures and bucket keys: made by the plain twins, so that two codes agree on them."""

import numpy as np

from simindex.kernels.reference import fastsim as fastsim_twin
from simindex.kernels.reference import minhash as minhash_twin
from simindex.kernels.reference import scan as scan_twin

SIZES = [0, 1, 2, 3, 10, 50, 200, 1000, 5000]
SMALL = [0, 1, 5, 40]
SLOTS = (16, 100, 128, 1024)


def hashes(sizes: list[int], bits: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Return compressed rows of hashes made by whole-number arithmetic: no random generator is frozen."""
    top = 2**64 - 1
    made = []
    for i in range(1, sum(sizes) + 1):
        x = i * 0x9E3779B97F4A7C15 & top
        x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & top
        made.append((x ^ x >> 32) * 0xD6E8FEB86659FD93 & top)
    array = np.array(made, np.uint64) >> np.uint64(64 - bits)
    return array, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def files() -> dict[str, bytes]:
    wide, ptr = hashes(SIZES)
    found = {
        f"fastsim_1_k{k}.bin": fastsim_twin.fastsim_packed(wide, ptr, k, 32).astype(np.uint8).tobytes()
        for k in SLOTS
    }
    first, second = minhash_twin.minhash_constants(64)
    small, small_ptr = hashes(SMALL)
    for bits in (8, 16, 32):
        own = minhash_twin.minhash_packed(small, small_ptr, first, second, "simindex", bits)
        found[f"minhash_1_{bits}.bin"] = own.tobytes()
    signatures = fastsim_twin.fastsim_packed(wide, ptr, 128, 8)
    for rows in (1, 5, 8, 13):
        keys = scan_twin.band_keys(signatures, 128 // rows, rows, 1)
        found[f"bands_1_r{rows}.bin"] = keys.astype("<u8").tobytes()
    return found
