"""Who may write: one thread of one process at a time, with a timeout and a name for whoever is in the way.

LMDB has a writer mutex of its own, and it is what keeps the file sound; but it blocks without a timeout and
does not say whom it waits for. This lock is taken first. Its inter-process half is a POSIX record lock on
two bytes far beyond the end of LMDB's `-lock` file, chosen because such locks end with their process (also
after kill -9), are never inherited by a forked child, and name their holder (F_GETLK). Two bytes make a
queue of one: whoever waits holds NEXT, so a writer that releases and asks again at once comes second.

The descriptor must be closed after LMDB's: closing any descriptor of a file drops all of the process's
record locks on it.
"""

import contextlib
import errno
import fcntl
import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from simindex.errors import Closed, Locked, OpenError, WriteError

MAX_READERS = 4096
_LOCK_BYTES = 128 + 64 * MAX_READERS  # the lock file as LMDB makes it: a head, and one cache line per reader
# Bytes of the lock file that stand for the lock; LMDB locks byte 0 and, for each reading process, that of
# its pid.
HELD = 1 << 40
NEXT = HELD + 1
_FIRST_WAIT, _LONGEST_WAIT = 0.0002, 0.005  # seconds between attempts
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, pid


class WriteLock:
    """The lock that every write transaction of one store takes first."""

    def __init__(self, path: Path) -> None:
        """path: the store's `-lock` file, which LMDB uses too."""
        self._path = path
        self._held = threading.Lock()
        self._next = threading.Lock()
        self._owner: threading.Thread | None = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise OpenError(
                f"{path}: the lock file cannot be opened for writing: {error.strerror}"
            ) from error

    def acquire(self, timeout: float) -> None:
        """Take the lock within `timeout` seconds (0 = one attempt), else raise Locked naming the holder."""
        me = threading.current_thread()
        if self._owner is me:
            raise WriteError(
                "this thread is already inside a write transaction of this store; "
                "use that transaction instead of beginning another inside it"
            )
        deadline = time.monotonic() + timeout
        self._hold(timeout)
        try:
            if self._file < 0:
                raise Closed(f"{self._path.name.removesuffix('-lock')} is closed")
            if not self.take_file(deadline - time.monotonic()):
                raise self._locked_by_process(timeout)
        except BaseException:
            self._held.release()
            raise
        self._owner = me

    def _hold(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        if not self._next.acquire(timeout=max(timeout, 0)):
            raise self._locked_by_thread(timeout)
        try:
            if not self._held.acquire(timeout=max(deadline - time.monotonic(), 0)):
                raise self._locked_by_thread(timeout)
        finally:
            self._next.release()

    @contextlib.contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Keep the other threads of this process out of the lock; other processes do not notice.

        Whoever closes the descriptor does it inside: a thread about to lock or unlock would meet a closed
        one, or a stranger's of the same number. Threads that waited for a lock closed meanwhile raise Closed.
        """
        self._hold(timeout)
        try:
            yield
        finally:
            self._held.release()

    def release(self) -> None:
        """Give the lock back; does nothing if it is not held."""
        if self._owner is None:
            return
        self._owner = None
        self.drop_file()
        self._held.release()

    def is_mine(self) -> bool:
        """Whether the calling thread holds the lock."""
        return self._owner is threading.current_thread()

    def close(self) -> None:
        """Close the descriptor. Only after LMDB has closed the store (see above)."""
        file, self._file = self._file, -1
        os.close(file)

    def take_file(self, timeout: float) -> bool:
        """Take the inter-process half alone; whether that worked within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        if not self._poll(NEXT, deadline):
            return False
        try:
            return self._poll(HELD, deadline)
        finally:
            self._unlock(NEXT)

    def drop_file(self) -> None:
        """Give the inter-process half back."""
        if self._file >= 0:
            self._unlock(HELD)

    def _poll(self, byte: int, deadline: float) -> bool:
        wait = _FIRST_WAIT
        while not self._try(byte):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(wait, left))
            wait = min(wait * 1.5, _LONGEST_WAIT)
        return True

    def _try(self, byte: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise OpenError(f"{self._path}: the file system refused a lock: {error.strerror}") from error
        return True

    def _unlock(self, byte: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)

    def _locked_by_thread(self, timeout: float) -> Locked:
        owner = self._owner
        name = f"thread {owner.name!r}" if owner else "another thread"
        return Locked(
            f"{name} of this process (pid {os.getpid()}) has been writing for longer than {timeout:g} s"
        )

    def _locked_by_process(self, timeout: float) -> Locked:
        pid = self.holder()
        if pid is None:
            who = "another process"
        else:
            command = command_line(pid)
            who = f"process {pid}" + (f" ({command})" if command else "")
        return Locked(
            f"{who} has been writing for longer than {timeout:g} s; wait, raise timeout=, or end that process"
        )

    def holder(self) -> int | None:
        """Return the pid of another process that holds the lock, or None (free, ours, or unknown to this
        system).
        """
        if not hasattr(fcntl, "F_GETLK") or struct.calcsize("P") != 8 or os.uname().sysname != "Linux":
            return None
        for byte in (HELD, NEXT):
            asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
            kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(self._file, fcntl.F_GETLK, asked))
            if kind != fcntl.F_UNLCK and pid > 0:
                return int(pid)
        return None


def prepare(path: Path) -> None:
    """Make the lock file, with all its bytes on the disk, before LMDB opens it. Raises OSError (no room).

    LMDB makes it sparse and maps it writable: on a full disk its first use would kill the process (SIGBUS).
    Only while LMDB has the store not open in this process: closing the descriptor drops the process's locks
    on it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, _LOCK_BYTES)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENODEV):
            raise
    finally:
        os.close(file)


def command_line(pid: int) -> str:
    """Return the command line of a process where the system shows it (/proc), else an empty string."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = " ".join(b" ".join(words).decode("utf-8", "replace").split())
    return text if len(text) <= 160 else text[:160] + "..."
