"""Plain twins of the record kernels: msgpack says what csrc/records.h says."""

from collections.abc import Sequence

import msgpack


def pack_record(key: int | str | bytes, sequence: int, attributes: bytes | None = None) -> bytes:
    """Return one record: array of three, the key with a head of fixed width, the sequence in nine bytes,
    attributes.
    """
    if isinstance(key, int):
        head = b"\xcf" + key.to_bytes(8, "big")
    else:
        raw = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
        head = (b"\xdb" if isinstance(key, str) else b"\xc6") + len(raw).to_bytes(4, "big") + raw
    return b"\x93" + head + b"\xcf" + sequence.to_bytes(8, "big") + (attributes or b"\xc0")


def unpack_record(record: bytes) -> tuple[int | str | bytes, int, object]:
    """Return [key, sequence, attributes] as any msgpack reader reads them."""
    key, sequence, attributes = msgpack.unpackb(
        record, raw=False, strict_map_key=False, unicode_errors="surrogatepass"
    )
    return key, sequence, attributes


def match(a: Sequence[bytes], b: Sequence[bytes], key_only: bool) -> list[bool]:
    """Return which pairs of records are equal but for their sequence, or have equal keys (of equal type)."""

    def part(record: bytes) -> object:
        key, _, attributes = unpack_record(record)
        return (type(key), key) if key_only else (type(key), key, msgpack.packb(attributes))

    return [part(x) == part(y) for x, y in zip(a, b, strict=True)]
