"""On interpreters that run without a global lock, transactions of a file run one at a time.

py-lmdb does not support free threading. Importing it turns the interpreter's lock on again; only where that
is overruled (PYTHON_GIL=0) transactions are serialised here: each holds one lock from begin to end, and must
end in the thread that began it.
"""

import sys
import threading
import warnings

import lmdb  # noqa: F401  importing it may turn the interpreter's lock on

required: bool = not getattr(sys, "_is_gil_enabled", lambda: True)()


def enter(lock: threading.RLock) -> None:
    """Begin one's turn."""
    if required:
        lock.acquire()


def leave(lock: threading.RLock) -> None:
    """End one's turn."""
    if required:
        lock.release()


def warn() -> None:
    """Say so, once."""
    if required:
        warnings.warn(
            "the interpreter runs without its global lock: transactions of a store run one at a time",
            RuntimeWarning,
            stacklevel=3,
        )
