"""Small frozen types that cross floors. Imports nothing of simindex."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

# State of one field of one row; two bits in a signature block's header. Frozen since format 1.
ABSENT = 0  # the item has no such field
EMPTY = 1  # the field has no features: stored, in no bucket, matches nothing
PRESENT = 2
SHORTENED = 3  # present; the content was shorter than one shingle and became one shingle of the whole


@dataclass(frozen=True, slots=True)
class Features:
    """Hashed features of n items in compressed-row form.

    hashes: uint64, shape (m,); item i has hashes[ptr[i]:ptr[i + 1]], any order, repeats allowed.
    ptr:    int64, shape (n + 1,), ptr[0] == 0, not decreasing.
    state:  uint8, shape (n,): ABSENT, EMPTY, PRESENT or SHORTENED. EMPTY and ABSENT have no features.
    """

    hashes: U64
    ptr: I64
    state: U8

    def __len__(self) -> int:
        return len(self.state)


@dataclass(frozen=True, slots=True)
class Packed:
    """n byte strings in one buffer: string i is data[offsets[i]:offsets[i + 1]].

    data: uint8; offsets: int64, shape (n + 1,), not decreasing (offsets[0] need not be 0).
    """

    data: U8
    offsets: I64

    def __len__(self) -> int:
        return len(self.offsets) - 1
