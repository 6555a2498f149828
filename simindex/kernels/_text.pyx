# cython: language_level=3
"""Placeholder until its kernels land."""


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
