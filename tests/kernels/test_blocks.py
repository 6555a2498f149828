"""The kernels of row-indexed blocks, at every instruction-set level."""

import numpy as np
import pytest

from simindex import kernels

LEVELS = kernels.dispatch.available()


@pytest.mark.parametrize("level", LEVELS)
def test_crc32c_equals_the_published_vectors(level: str) -> None:
    with kernels.dispatch.forced(level):
        assert kernels.crc32c(b"123456789") == 0xE3069283  # the check value of the catalogue of CRCs
        assert kernels.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4: 32 bytes of zeros
        assert kernels.crc32c(b"\xff" * 32) == 0x62A8AB43  # 32 bytes of ones
        assert kernels.crc32c(bytes(range(32))) == 0x46DD794E  # 32 ascending bytes
        assert kernels.crc32c(b"") == 0


@pytest.mark.parametrize("level", LEVELS)
def test_crc32c_is_equal_at_every_level_length_and_alignment(level: str) -> None:
    data = np.random.default_rng(3).integers(0, 256, 400, dtype=np.uint8)
    for start in range(9):
        for length in (0, 1, 7, 8, 9, 63, 64, 65, 300):
            with kernels.dispatch.forced("baseline"):
                expected = kernels.crc32c(data[start : start + length])
            with kernels.dispatch.forced(level):
                assert kernels.crc32c(data[start : start + length]) == expected
