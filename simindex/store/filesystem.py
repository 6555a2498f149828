"""What lies under a file: the kind of file system, the room left on it, and the room in this process."""

import contextlib
import mmap
import os
import resource
from pathlib import Path

from simindex.errors import UnsafeFileSystem

NETWORK = frozenset(
    [
        "nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afs", "9p", "ceph",
        "lustre", "glusterfs", "gpfs", "beegfs", "orangefs", "davfs", "davfs2", "coda",
        "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.davfs", "fuse.davfs2", "fuse.s3fs",
        "fuse.rclone", "fuse.goofys", "fuse.gcsfuse", "fuse.mount-s3", "fuse.smbnetfs",
        "fuse.curlftpfs", "fuse.juicefs", "fuse.blobfuse", "fuse.blobfuse2", "fuse.gvfsd-fuse",
    ]
)  # fmt: skip
_MOUNTS = Path("/proc/self/mountinfo")
_ENOUGH = 1 << 20  # bytes: a file system with less than this free counts as full


def kind(path: Path, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system that holds `path` ("ext4", "nfs4", ...), or "" where none can be
    told.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    real, best, found = os.path.realpath(path), "", ""
    for line in lines:
        left, _, right = line.partition(" - ")
        words = left.split(" ")
        if len(words) < 5 or not right:
            continue
        point = _unescape(words[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # later lines cover earlier ones
            best, found = point, right.split(" ")[0]
    return found


def refuse_network(path: Path, mounts: Path = _MOUNTS) -> None:
    """Raise UnsafeFileSystem if `path` lies on a network file system."""
    found = kind(path, mounts)
    if found in NETWORK:
        raise UnsafeFileSystem(
            f"{path}: lies on a network file system ({found}), where memory maps and locks of "
            "different machines do not see each other and a store can be damaged; move it to a local disk, "
            "or pass force=True if only one machine ever opens it"
        )


def is_full(path: Path) -> bool:
    """Whether the file system, or this process's limit on file sizes, leaves no room for the file to grow."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    with contextlib.suppress(OSError):
        if limit != resource.RLIM_INFINITY and os.stat(path).st_size + _ENOUGH > limit:
            return True
        return free_bytes(path) < _ENOUGH
    return False


def free_bytes(path: Path) -> int:
    """Return the bytes that this user may still write to the file system of `path`."""
    seen = os.statvfs(path)
    return seen.f_bavail * seen.f_frsize


def allocate(path: Path, size: int) -> None:
    """Lengthen a file to `size` bytes that are really there, where the file system can; never shorten it."""
    if not hasattr(os, "posix_fallocate"):
        return
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            have = os.fstat(file).st_size
            if have < size:
                os.posix_fallocate(file, have, size - have)
        finally:
            os.close(file)


def address_space(size: int) -> bool:
    """Whether this process may map `size` more bytes (`ulimit -v`). Maps and unmaps as much, touching
    nothing.
    """
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ).close()
    except (OSError, OverflowError, ValueError):
        return False
    return True


def _unescape(text: str) -> str:
    # mountinfo writes space, tab, newline and backslash as three octal digits
    for code in ("040", "011", "012", "134"):
        text = text.replace("\\" + code, chr(int(code, 8)))
    return text
