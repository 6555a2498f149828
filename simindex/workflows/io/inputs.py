"""The input files of a corpus.

Their identity, and their content as a stream. Standard input is spooled as it is read.
"""

import io
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, cast

from simindex.errors import FeatureError
from simindex.workflows.io.streams import decompressed

STDIN = "-"
_MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5": "zst"}


@dataclass(slots=True)
class InputFile:
    """One input: its path as given, its identity (size and mtime_ns, -1 for standard input), its compression.

    spool: where standard input is copied to while it is read; the second pass reads it there. None: it is
        read once.
    on_read: called with the number of raw bytes of each read, for the progress.
    """

    path: str
    compression: str
    size: int
    mtime_ns: int
    spool: str | None = None
    _spooled: bool = field(default=False, repr=False)
    on_read: Callable[[int], None] | None = field(default=None, repr=False)

    @classmethod
    def at(cls, path: str, compression: str, spool: str | None = None) -> "InputFile":
        """Look at a path.

        Raises FeatureError if it is neither a file nor standard input, OSError if it cannot be read.
        """
        if path == STDIN:
            return cls(path, compression, -1, -1, spool)
        status = os.stat(path)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise FeatureError(
                f"{path}: a pipe or device can be read only as standard input: give '-' and redirect"
            )
        return cls(path, compression, status.st_size, status.st_mtime_ns)

    @property
    def is_stdin(self) -> bool:
        return self.path == STDIN

    @property
    def name(self) -> str:
        return "standard input" if self.is_stdin else self.path

    def identity(self) -> dict[str, Any]:
        path = self.path if self.is_stdin else os.path.abspath(self.path)
        return {"path": path, "size": self.size, "mtime_ns": self.mtime_ns}

    def content(self) -> IO[bytes]:
        """Return the decompressed content from its start.

        The caller closes it. Standard input is read once, then its spool.
        """
        if not self.is_stdin:
            raw: Any = open(self.path, "rb", buffering=0)  # noqa: SIM115 (closed by the stream around it)
            if self.compression:
                raw = _Counted(raw, self)
            return decompressed(raw, self.compression, self.name)
        if self._spooled:
            return open(cast(str, self.spool), "rb", buffering=0)
        self._spooled = True
        if sys.stdin is None:
            raise FeatureError("standard input is closed")
        source: Any = sys.stdin.buffer
        magic = bytes(source.peek(2)[:2])
        stream = decompressed(cast("IO[bytes]", source), _MAGIC.get(magic, ""), self.name)
        if self.spool is None:
            return stream
        return cast("IO[bytes]", _Tee(stream, self.spool, self))

    def local_path(self) -> str:
        """Return a path that can be read from any position: standard input is copied to its spool first."""
        if not self.is_stdin:
            return self.path
        if not self._spooled:
            with self.content() as stream:
                while stream.read(1 << 20):
                    pass
        return cast(str, self.spool)


class _Counted(io.RawIOBase):
    """Compressed bytes on their way, counted."""

    def __init__(self, raw: IO[bytes], file: InputFile) -> None:
        self._raw = raw
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = cast(int, self._raw.readinto(buffer))  # type: ignore[attr-defined]
        if self._file.on_read is not None:
            self._file.on_read(count)
        return count

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Tee(io.RawIOBase):
    """Standard input; whatever is read is also appended to the spool."""

    def __init__(self, stream: IO[bytes], spool: str, file: InputFile) -> None:
        self._stream = stream
        self._file = file
        self._spool = open(spool, "wb", buffering=0)  # noqa: SIM115 (closed by close)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._stream.read(len(view))
        view[: len(data)] = data
        rest = memoryview(data)
        while rest:
            rest = rest[self._spool.write(rest) :]
        if self._file.on_read is not None:
            self._file.on_read(len(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._spool.close()
        super().close()
