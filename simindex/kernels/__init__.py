"""Pure functions on arrays: compiled kernels, and a plain numpy twin of each in `reference`.

No input or output, no objects, no state but the chosen instruction-set level. Upper floors import from here only.
"""

from simindex.kernels import dispatch

__all__ = ["dispatch"]
