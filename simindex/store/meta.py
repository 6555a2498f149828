"""What a store says of itself: the identity record, written once when the store is made.

Value of the key `layout.IDENTITY` in the database `meta`: 8 bytes magic, uint32 format version, uint32 CRC-32
of all that follows, then UTF-8 JSON, one object. Integers are big-endian. Frozen since format 1: changing
this breaks stores.
"""

import json
import struct
import sys
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

from simindex.errors import CorruptStore, EngineMismatch, FormatTooNew, NotAStore
from simindex.store.layout import FORMAT_VERSION

MAGIC = b"SIMINDEX"
OLDEST_FORMAT = 1
ENGINE = "lmdb-0.9"
_HEAD = struct.Struct(">8sII")


@dataclass(frozen=True)
class Identity:
    """What made this store, and with what settings.

    engine: the LMDB engine's file format ("lmdb-0.9"); page_bytes: its page size; byte_order: of the
    engine's own structures; created_by: the version of simindex; created: seconds since 1970, UTC; settings:
    free, JSON values.
    """

    created_by: str
    page_bytes: int
    created: int = field(default_factory=lambda: int(time.time()))
    format: int = FORMAT_VERSION
    engine: str = ENGINE
    byte_order: str = sys.byteorder
    settings: dict[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the stored form; `decode` reads it back."""
        body = json.dumps(
            {
                "created": self.created,
                "created_by": self.created_by,
                "engine": self.engine,
                "page_bytes": self.page_bytes,
                "byte_order": self.byte_order,
                "settings": self.settings,
            },
            sort_keys=True,
            separators=(",", ":"),
        ).encode()
        return _HEAD.pack(MAGIC, self.format, zlib.crc32(body)) + body

    @classmethod
    def decode(cls, value: bytes, where: str) -> "Identity":
        """Return the identity in a stored value; `where` names the file in errors.

        Raises NotAStore (other magic), FormatTooNew, EngineMismatch, CorruptStore (checksum or contents).
        """
        if len(value) < _HEAD.size or value[: len(MAGIC)] != MAGIC:
            raise NotAStore(f"{where}: an LMDB file, but not a simindex store")
        _, version, crc = _HEAD.unpack_from(value)
        if version > FORMAT_VERSION:
            raise FormatTooNew(
                f"{where}: the store has format {version}, this version reads "
                f"{OLDEST_FORMAT} to {FORMAT_VERSION}: "
                "upgrade simindex, or run 'simindex dump' with the version that wrote it"
            )
        body = value[_HEAD.size :]
        # The checksum does not cover the version, but no version below the oldest was ever written.
        if version < OLDEST_FORMAT or zlib.crc32(body) != crc:
            raise CorruptStore(
                f"{where}: the identity record fails its checksum; restore the store from a backup"
            )
        try:
            seen = json.loads(body)
            identity = cls(
                created_by=str(seen["created_by"]),
                page_bytes=int(seen["page_bytes"]),
                created=int(seen["created"]),
                format=version,
                engine=str(seen["engine"]),
                byte_order=str(seen["byte_order"]),
                settings=dict(seen["settings"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptStore(f"{where}: the identity record cannot be read ({error!r})") from error
        if identity.engine != ENGINE:
            raise EngineMismatch(
                f"{where}: the store uses engine {identity.engine}, this version uses {ENGINE}"
            )
        return identity
