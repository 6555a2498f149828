"""Frozen bytes: signatures and bucket keys in stores never change (made by tools/golden/sketch.py)."""

import hashlib
import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from simindex import lsh, sketch
from simindex.types import EMPTY, PRESENT, Features

TOPIC = Path(__file__).parent.parent.parent / "tools" / "golden" / "sketch.py"


def inputs(sizes_name: str) -> Features:
    """The hashed features that the golden files were made of."""
    spec = importlib.util.spec_from_file_location("golden_sketch", TOPIC)
    assert spec is not None
    assert spec.loader is not None
    topic = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(topic)
    hashes, ptr = topic.hashes(getattr(topic, sizes_name))
    return Features(hashes, ptr, np.where(np.diff(ptr) > 0, PRESENT, EMPTY).astype(np.uint8))


@pytest.mark.parametrize("k", [16, 100, 128, 1024])
def test_fastsim_bytes_are_frozen(isa, golden, k):
    family = sketch.family("fastsim/1", {"k": k, "slots": 32})
    signatures = family.sign(inputs("SIZES"))
    assert signatures.tobytes() == golden(f"fastsim_1_k{k}.bin")
    for bits in (8, 16):
        cut = sketch.family("fastsim/1", {"k": k, "slots": bits}).sign(inputs("SIZES"))
        assert np.array_equal(cut, signatures.view("<u4").astype(f"<u{bits // 8}").view(np.uint8))


def test_threads_sign_the_frozen_bytes(golden):
    """Case S1: eight threads at once, each a batch of its own."""
    family = sketch.family("fastsim/1", {"k": 128, "slots": 32})
    items = inputs("SIZES")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: family.sign(items).tobytes(), range(64)))
    assert set(made) == {golden("fastsim_1_k128.bin")}


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_fresh_processes_sign_the_frozen_bytes(golden, seed):
    """Case S1: whatever PYTHONHASHSEED is."""
    program = (
        "import hashlib, importlib.util, numpy as np\n"
        "from simindex import sketch\nfrom simindex.types import Features\n"
        f"spec = importlib.util.spec_from_file_location('golden_sketch', {str(TOPIC)!r})\n"
        "topic = importlib.util.module_from_spec(spec); spec.loader.exec_module(topic)\n"
        "hashes, ptr = topic.hashes(topic.SIZES)\n"
        "items = Features(hashes, ptr, np.where(np.diff(ptr) > 0, 2, 1).astype(np.uint8))\n"
        "signatures = sketch.family('fastsim/1', {'k': 128, 'slots': 32}).sign(items)\n"
        "print(hashlib.sha256(signatures.tobytes()).hexdigest())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == hashlib.sha256(golden("fastsim_1_k128.bin")).hexdigest()


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_minhash_bytes_are_frozen(isa, golden, bits):
    family = sketch.family("minhash/1", {"k": 64, "slots": bits})
    assert family.sign(inputs("SMALL")).tobytes() == golden(f"minhash_1_{bits}.bin")


@pytest.mark.parametrize("rows", [1, 5, 8, 13])
def test_bucket_keys_are_frozen(golden, rows):
    family = sketch.family("fastsim/1")
    keys = lsh.Bands(128 // rows, rows, family).keys(family.sign(inputs("SIZES")))
    assert keys.astype("<u8").tobytes() == golden(f"bands_1_r{rows}.bin")
