"""Who is inside a file: counts the live transactions of this process, and lets one caller have the file
alone.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from simindex.errors import Locked

_GLANCE = 0.05  # seconds: how often a waiting caller looks for transactions dropped without an end


class Gate:
    """Transactions enter and leave; `alone` waits until none is inside and keeps new ones out.

    A thread that is inside already may enter again although someone waits to be alone: else it would wait
    for itself. mutex guards everything here; it is not re-entrant, and nothing blocks while holding it.
    """

    __slots__ = ("_alone", "_changed", "mutex", "threads")

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self._changed = threading.Condition(self.mutex)
        self._alone = False
        self.threads: dict[int, int] = {}

    def enter(self, thread: int) -> None:
        """Count a transaction of `thread` in; the caller holds the mutex."""
        inside = self.threads.get(thread, 0)
        while self._alone and not inside:
            self._changed.wait()
        self.threads[thread] = inside + 1

    def leave(self, thread: int) -> None:
        """Count a transaction of `thread` out; the caller holds the mutex."""
        left = self.threads[thread] - 1
        if left:
            self.threads[thread] = left
        else:
            del self.threads[thread]
        if self._alone:
            self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self, timeout: float, why: str) -> Iterator[None]:
        """Have the file alone inside the block. Raises Locked ("cannot <why>: ...") after `timeout`
        seconds.
        """
        deadline = time.monotonic() + timeout
        with self.mutex:
            if self.threads.get(threading.get_ident()):
                raise Locked(f"cannot {why} while this thread has a transaction or snapshot open")
            while self._alone:
                self._wait(deadline, f"cannot {why}: another thread has been at it for {timeout:g} s")
            self._alone = True
            try:
                while self.threads:
                    count = sum(self.threads.values())
                    self._wait(
                        deadline, f"cannot {why}: {count} transactions of other threads are still open"
                    )
            except BaseException:
                self._open()
                raise
        try:
            yield
        finally:
            with self.mutex:
                self._open()

    def _open(self) -> None:
        self._alone = False
        self._changed.notify_all()

    def _wait(self, deadline: float, message: str) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Locked(message)
        self._changed.wait(min(left, _GLANCE))
