"""Plain twin of the label kernel: what pack_labels returns, by json and msgpack."""

import json
import re

import msgpack

from simindex.types import I64, U8

ABSENT, STRING, NUMBER = 0, 1, 2  # of scan_jsonl
_PLAIN = re.compile(rb"\d+\Z")


def pack_labels(
    data: U8, start: I64, end: I64, kind: U8, head: bytes, tail: bytes, bare: bytes
) -> list[bytes] | None:
    """Return each item's attributes; None if a label is neither a plain string nor a plain integer."""
    raw = data.tobytes()
    out = []
    for a, b, what in zip(start.tolist(), end.tolist(), kind.tolist(), strict=True):
        if what == ABSENT:
            out.append(bare)
            continue
        text = raw[a:b]
        if what == STRING:
            value = text[1:-1].decode("utf-8", "surrogatepass")
        elif what == NUMBER and _PLAIN.match(text) and int(text) < 1 << 64:
            value = json.loads(text)
        else:
            return None
        out.append(head + msgpack.packb(value, unicode_errors="surrogatepass") + tail)
    return out
