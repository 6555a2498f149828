"""Which instruction-set level the kernels run at.

All levels give equal results to the bit; the choice is one of speed. `SIMINDEX_ISA=baseline|avx2|avx512` in
the environment lowers the level for a whole process (tests run the suite once per level).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from simindex.kernels import _cpu

LEVELS = ("baseline", "avx2", "avx512")
_MODULES = (
    "_text",
    "_jsonl",
    "_fastsim",
    "_minhash",
    "_scan",
    "_sets",
    "_runs",
    "_blocks",
    "_links",
    "_labels",
    "_records",
    "_search",
)
_active = 0


def available() -> tuple[str, ...]:
    """Return the levels that this machine can run, lowest first."""
    return LEVELS[: _cpu.machine_level() + 1]


def active() -> str:
    """Return the level in force."""
    return LEVELS[_active]


def select(level: str) -> None:
    """Run every kernel at `level` from now on.

    Raises ValueError if the level has no such name or this machine cannot run it.
    """
    global _active
    if level not in LEVELS:
        raise ValueError(f"unknown instruction-set level {level!r}: known levels are {', '.join(LEVELS)}")
    number = LEVELS.index(level)
    if number > _cpu.machine_level():
        raise ValueError(f"this machine cannot run level {level!r}: its highest is {available()[-1]!r}")
    for name in _MODULES:
        import_module(f"simindex.kernels.{name}")._select(number)
    _active = number


@contextmanager
def forced(level: str) -> Iterator[None]:
    """Run the block at `level` (tests and `selftest`); not for use beside other threads."""
    before = active()
    select(level)
    try:
        yield
    finally:
        select(before)


select(os.environ.get("SIMINDEX_ISA") or available()[-1])
