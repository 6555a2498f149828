"""The distinct values of an array. numpy.unique does the same, but imports numpy.ma at its first call: 45 ms,
which is more than all the rest of a first search.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from simindex.types import I64

T = TypeVar("T", bound=np.generic)


def distinct(values: npt.NDArray[T]) -> npt.NDArray[T]:
    """Return the distinct values of a 1-d array, ascending."""
    ordered = np.sort(values)
    return ordered[starts(ordered)]


def starts(ordered: npt.NDArray[T]) -> I64:
    """Return where each distinct value of a sorted 1-d array begins, int64."""
    if len(ordered) == 0:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
