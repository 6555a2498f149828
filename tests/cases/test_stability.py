"""Signatures that stop matching over time elsewhere (S1, S2, S4, S5).

Not run here: arm64, Windows, macOS, big-endian machines, NumPy 1, processors without AVX under emulation
(there is no qemu-user here); p-stable of S2 comes with that family; merging two files (S4) is no command yet.
"""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import signing
from cases.sets import words

import simindex
from simindex.errors import KeyTypeError, SchemaError

# Frozen with fastsim/1, minhash/1, text/1 and their bands: another value breaks every stored file.
DIGEST = "32046b78bb030a1700b4c5d0f202ee890f9dfa09269b35aedbb20f6d26c9e409"


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_signatures_are_the_same_with_every_hash_seed(seed: str) -> None:
    """S1: elsewhere each run differs."""
    done = subprocess.run(
        [sys.executable, signing.__file__],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == DIGEST, done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_signatures_are_the_same_in_other_processes(method: str) -> None:
    """S1."""
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(signing.digest, range(2)) == [DIGEST] * 2


def test_signatures_are_the_same_in_threads() -> None:
    """S1."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(signing.digest, range(8))) == [DIGEST] * 8


def test_signatures_are_the_same_at_every_level_of_this_processor(isa: Any) -> None:
    """S2."""
    assert signing.digest() == DIGEST


STORED = {"threshold": 0.8, "family": "minhash/1", "scheme": "affine64", "seed": 1}


@pytest.mark.parametrize(
    ("other", "stored", "asked"),
    [
        ({"k": 256}, "128", "256"),
        ({"seed": 2}, "1", "2"),
        ({"shingle": "chars:5"}, "words:3", "chars:5"),
        ({"family": "fastsim/1", "scheme": None, "seed": None}, "minhash/1", "fastsim/1"),
        ({"verify": "estimate"}, "exact", "estimate"),
        ({"threshold": 0.7}, "0.8", "0.7"),
    ],
)
def test_other_settings_than_the_stored_are_refused(
    path: Path, other: dict[str, Any], stored: str, asked: str
) -> None:
    """S4: elsewhere nonsense results; both values are named, nothing is written."""
    with simindex.open(path) as db:
        db.create_collection("s4", {"body": simindex.text(**STORED)}).put("a", {"body": words(0, 9)})
    before = path.read_bytes()
    with simindex.open(path) as db:
        with pytest.raises(SchemaError) as caught:
            db.create_collection("s4", {"body": simindex.text(**(STORED | other))}, exist_ok=True)
        assert stored in str(caught.value)
        assert asked in str(caught.value)
        with pytest.raises(SchemaError, match="key"):
            db.create_collection("s4", {"body": simindex.text(**STORED)}, key="int", exist_ok=True)
        again = db.create_collection("s4", {"body": simindex.text(**STORED)}, exist_ok=True)
        assert [h.key for h in again.search(body=words(0, 9))] == ["a"]
    assert path.read_bytes() == before


def test_dedup_refuses_an_index_with_other_settings(command: Any, lines: Any, tmp_path: Path) -> None:
    """S4, through the command."""
    source = lines("in.jsonl", [{"text": words(i * 20, i * 20 + 20)} for i in range(20)])
    arguments = ("dedup", source, "-o", "out.jsonl", "--index", "i.simdb", "--quiet")
    assert command(*arguments).returncode == 0
    before = (tmp_path / "i.simdb").read_bytes()
    (tmp_path / "out.jsonl").unlink()
    done = command(*arguments, "--shingle", "chars:5")
    assert done.returncode in (2, 3)
    assert "chars:5" in done.stderr
    assert "words:3" in done.stderr
    assert (tmp_path / "i.simdb").read_bytes() == before
    assert not (tmp_path / "out.jsonl").exists()


def test_int_keys(path: Path) -> None:
    """S5: a NumPy integer is the same key; nothing else passes for an integer."""
    with simindex.open(path) as db:
        items = db.create_collection("s5", {"tags": simindex.tokens()}, key="int")
        items.put(1, {"tags": ["x"], "n": 0})
        for n, key in enumerate((np.int64(1), np.uint8(1), np.uint64(1))):
            items.put(key, {"tags": ["x"], "n": n})
            assert items[1] == items[key] == {"n": n}
        assert list(items) == [1]
        for key in (True, np.bool_(True), 1.0, np.float64(1), "1", b"1", -1, np.int64(-1), 2**64, None):
            for call in (lambda key=key: items.put(key, {"tags": ["y"]}), lambda key=key: items.get(key)):
                with pytest.raises(KeyTypeError) as caught:
                    call()
                assert isinstance(caught.value, TypeError)
                assert isinstance(caught.value, ValueError)
        for key in (0, 2**63 - 1, 2**63, 2**64 - 1):
            items.put(key, {"tags": ["x"]})
        assert list(items) == [1, 0, 2**63 - 1, 2**63, 2**64 - 1]
        hits = items.search(tags=["x"])
        assert [h.key for h in hits] == [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
        assert all(type(h.key) is int for h in hits)


def test_str_keys(path: Path) -> None:
    """S5: elsewhere one long key fails the whole load; iteration is in the order of insertion."""
    url = "https://example.org/" + "a" * 2_980
    keys = ["1", "", "a\0b", "a", url, url + "b", "é", "e\u0301"]
    with simindex.open(path) as db:
        items = db.create_collection("s5", {"tags": simindex.tokens()})
        items.put_many([{"key": key, "tags": ["x"], "n": n} for n, key in enumerate(keys)])
        with pytest.raises(KeyTypeError, match="keys are str"):
            items.put(b"1", {"tags": ["x"]})
    with simindex.open(path) as db:
        items = db["s5"]
        assert list(items) == keys
        assert [items[key]["n"] for key in keys] == list(range(len(keys)))
        assert [h.key for h in items.search(tags=["x"])] == sorted(keys)
        assert "b" not in items


def test_bytes_keys(path: Path) -> None:
    """S5."""
    with simindex.open(path) as db:
        items = db.create_collection("s5", {"tags": simindex.tokens()}, key="bytes")
        items.put(b"\xff\0", {"tags": ["x"]})
        items.put(b"", {"tags": ["x"]})
        assert list(items) == [b"\xff\0", b""]
        assert [h.key for h in items.search(tags=["x"])] == [b"", b"\xff\0"]
        for key in ("1", 1, None):
            with pytest.raises(KeyTypeError, match="keys are bytes"):
                items.put(key, {"tags": ["x"]})
