"""Byte streams.

Decompression that reads every member and notices a missing end; output that appears by rename.
"""

import contextlib
import gzip
import io
import os
import zlib
from typing import IO, Any, cast

from simindex.workflows.io.batch import TruncatedInput

_CHUNK = 1 << 20


class _ZstdReader(io.RawIOBase):
    """The content of all frames of a .zst stream; TruncatedInput if the last one has no end."""

    def __init__(self, raw: IO[bytes], name: str) -> None:
        import zstandard

        self._module = zstandard
        self._raw = raw
        self._name = name
        self._frame: Any = None
        self._ready = b""
        self._rest = b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._rest or self._raw.read(_CHUNK)
            self._rest = b""
            if not data:
                if self._frame is not None:
                    raise TruncatedInput(f"{self._name}: the file ends inside a zstd frame: it is cut short")
                return 0
            if self._frame is None:
                self._frame = self._module.ZstdDecompressor().decompressobj()
            try:
                self._ready = self._frame.decompress(data)
            except self._module.ZstdError as error:
                raise TruncatedInput(f"{self._name}: broken zstd data: {error}") from error
            if self._frame.eof:
                self._rest = self._frame.unused_data
                self._frame = None
        view = memoryview(buffer).cast("B")
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


class _GzipReader(io.RawIOBase):
    """The content of all members of a .gz stream, its errors named by file."""

    def __init__(self, raw: IO[bytes], name: str) -> None:
        self._raw = raw
        self._name = name
        self._file = gzip.GzipFile(fileobj=raw, mode="rb")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        self._raw.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        try:
            return self._file.readinto(buffer)
        except EOFError as error:
            raise TruncatedInput(
                f"{self._name}: the file ends inside a gzip member: it is cut short"
            ) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TruncatedInput(f"{self._name}: broken gzip data: {error}") from error


def decompressed(raw: IO[bytes], compression: str, name: str) -> IO[bytes]:
    """Return the content of `raw`: as it is (""), or of all its gzip members ("gz") or zstd frames ("zst").

    Raises TruncatedInput, also later while reading, if the data are broken or cut short.
    """
    if compression == "gz":
        return cast("IO[bytes]", io.BufferedReader(_GzipReader(raw, name), _CHUNK))
    if compression == "zst":
        return cast("IO[bytes]", io.BufferedReader(_ZstdReader(raw, name), _CHUNK))
    return raw


def skip(stream: IO[bytes], count: int) -> None:
    """Move `count` bytes on: a seek where the stream can, else reading."""
    if count == 0:
        return
    if isinstance(stream, io.FileIO):
        stream.seek(count, os.SEEK_CUR)
        return
    while count:
        data = stream.read(min(count, _CHUNK))
        if not data:
            raise TruncatedInput(f"the input is {count} bytes shorter than when it was read first")
        count -= len(data)


class Output:
    """A file that is written under a temporary name and gets its own by rename, complete and on disk.

    write(data) appends; finish() closes, syncs and renames; close() without finish() leaves the old file as
    it was.
    """

    def __init__(self, path: str, temporary: str, compression: str = "") -> None:
        self.path = path
        self.temporary = temporary
        self._raw: IO[bytes] = open(temporary, "wb", buffering=0)  # noqa: SIM115 (closed by close)
        self._file: Any = self._raw
        if compression == "gz":
            # No name and no time in the header: the same survivors are the same bytes.
            self._file = gzip.GzipFile(filename="", fileobj=self._raw, mode="wb", compresslevel=6, mtime=0)
        elif compression == "zst":
            import zstandard

            self._file = zstandard.ZstdCompressor(level=3).stream_writer(self._raw, closefd=False)

    def write(self, data: bytes | memoryview) -> None:
        view = memoryview(data).cast("B")
        if self._file is not self._raw:
            self._file.write(view)
            return
        while view:
            view = view[self._raw.write(view) :]

    def seal(self) -> None:
        """End the stream and put it on disk, still under its temporary name."""
        if self._file is not self._raw:
            self._file.close()
        os.fsync(self._raw.fileno())
        self._raw.close()

    def finish(self) -> None:
        """Seal the file and give it its name."""
        if not self._raw.closed:
            self.seal()
        os.replace(self.temporary, self.path)
        sync_folder(self.path)

    def close(self) -> None:
        self._raw.close()


def sync_folder(path: str) -> None:
    """Put a rename on disk; not every file system can, and then the rename is as durable as it gets."""
    with contextlib.suppress(OSError):
        handle = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
