"""Letting go of a store's mapped pages: resident memory falls, what is read stays right."""

import re
from pathlib import Path

import numpy as np
import pytest

from simindex.store import residency, trim


def resident_file_bytes() -> int:
    return int(re.search(r"RssFile:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]


def test_trim_lets_go_of_a_shared_map_and_nothing_else(tmp_path: Path) -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("only on Linux")
    import mmap

    path, other = tmp_path / "shared", tmp_path / "private"
    data = np.random.default_rng(1).bytes(64 << 20)
    path.write_bytes(data)
    other.write_bytes(b"x" * 4096)
    with path.open("rb") as file, other.open("rb") as second:
        shared = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        private = mmap.mmap(second.fileno(), 0, access=mmap.ACCESS_COPY)
        private[:5] = b"mine!"
        assert shared[:] == data
        before = resident_file_bytes()
        assert not trim(path, 1 << 40)
        assert trim(path, 0)
        assert resident_file_bytes() < before - (48 << 20)
        assert shared[:] == data
        assert not residency._shared_maps(str(other))
        trim(other, 0)
        assert private[:5] == b"mine!"
        shared.close()
        private.close()
