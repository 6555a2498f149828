"""Signatures from uint64 token hashes, k = 128, 8-bit slots, one thread.

Beside rensa's full-set R-MinHash and FastSketchLSH.
"""

import FastSketchLSH
import numpy as np
import rensa
from measure import Row, paired

from simindex import sketch
from simindex.types import PRESENT, Features

BARS = {10: "0.5", 20: "0.5", 50: "1.5", 100: "1.6", 200: "2", 500: "1.5", 1000: "2", 5000: "2"}


def rows() -> list[Row]:
    family = sketch.family("fastsim/1", {"k": 128, "slots": 8})
    peer = FastSketchLSH.FastSimilaritySketch(size=128, seed=42)
    rng = np.random.default_rng(1)
    out = []
    for n, bar in BARS.items():
        items = max(2_000_000 // n, 200)
        hashes = rng.integers(0, 2**64, size=items * n, dtype=np.uint64)
        ptr = np.arange(0, items * n + 1, n, dtype=np.int64)
        uptr = ptr.astype(np.uint64)
        features = Features(hashes, ptr, np.full(items, PRESENT, np.uint8))
        ours, peers, ratio = paired(
            lambda f=features: family.sign(f),
            {
                "rensa": lambda h=hashes, p=uptr: rensa.RMinHash.digest_matrix_from_flat_token_hashes(
                    h, p, 128, 42
                ),
                "FastSketchLSH": lambda h=hashes, p=uptr: peer.batch_csr(h, p, prehashed=True, num_threads=1),
            },
        )
        tokens = items * n / 1e6
        out.append(
            Row(
                "sign", f"{n} tokens a set", "M tokens/s", tokens / ours,
                {name: tokens / t for name, t in peers.items()}, ratio, bar=f"{bar} x rensa",
            )
        )  # fmt: skip
    return out
