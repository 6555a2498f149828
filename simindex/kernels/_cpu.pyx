# cython: language_level=3
"""What this machine's processor can do."""

cdef extern from "cpu.h" nogil:
    int si_machine_level()


def machine_level():
    """Return the highest instruction-set level that this machine runs: 0 baseline, 1 avx2, 2 avx512."""
    return si_machine_level()
