"""Plain twin of _text: what a token, a shingle and a hash are, said with Python's own text methods.

It uses Python's unicodedata, so it equals the kernels where that has the package's UNICODE_VERSION (CPython
3.11 has 14.0), and on all characters that did not change since.
"""

import unicodedata
from collections.abc import Iterable

import numpy as np

from simindex.kernels.reference import scripts
from simindex.types import EMPTY, I64, PRESENT, SHORTENED, U8, U64

MASK = 2**64 - 1
K0, K1, K2, K3 = 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179, 0xCBBB9D5DC1059ED9, 0x629A292A367CD507
P = 0x152FECD8F70E593B
BAD_BYTE = 0x110000
_IGNORABLE = scripts.expand(scripts.IGNORABLE)
_UNSPACED = scripts.expand(scripts.UNSPACED)
_SPACES = scripts.expand(scripts.SPACES)
SEGMENT = 128


def mix64(x: int) -> int:
    """Return x mixed by the frozen bijection."""
    x ^= x >> 32
    x = x * 0xD6E8FEB86659FD93 & MASK
    x ^= x >> 29
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 32


def fold128(x: int, y: int) -> int:
    """Return the product's high half xor its low half."""
    return x * y >> 64 ^ (x * y & MASK)


def hash64(data: bytes, seed: int = 0) -> int:
    """Return h64/1 of a byte string."""
    state = seed ^ K0
    blocks = [data[i : i + 16].ljust(16, b"\0") for i in range(0, max(len(data), 1), 16)]
    words = [(int.from_bytes(x[:8], "little"), int.from_bytes(x[8:], "little")) for x in blocks]
    for a, b in words[:-1]:
        state = fold128(a ^ K1 ^ state, b ^ K2) + K3 & MASK
    a, b = words[-1]
    h = fold128(a ^ K1 ^ state, b ^ K2 ^ (len(data) * K3 & MASK))
    h ^= h >> 32
    h = h * 0xD6E8FEB86659FD93 & MASK
    return h ^ h >> 29


def decode(data: bytes) -> list[int]:
    """Return code points; a byte that belongs to no well-formed sequence is BAD_BYTE + byte."""
    points = []
    at = 0
    while at < len(data):
        for width in (1, 2, 3, 4):
            try:
                points.append(ord(data[at : at + width].decode("utf-8", "surrogatepass")))
            except (UnicodeDecodeError, TypeError):
                continue
            at += width
            break
        else:
            points.append(BAD_BYTE + data[at])
            at += 1
    return points


def _normal(text: str, normalize: str, casefold: bool) -> str:
    if normalize == "none":
        return text.casefold() if casefold else text
    if not casefold:
        return unicodedata.normalize("NFC" if normalize == "nfc" else "NFKC", text)
    text = unicodedata.normalize("NFD", text).casefold()
    if normalize == "nfkc":
        text = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", text)


def clean(points: list[int], normalize: str, casefold: bool, drop: bool) -> list[int]:
    """Return the code points after normalisation and case folding, ignorable ones dropped first if asked.

    Differs from the kernel where more than 128 code points in a row join: the kernel cuts such segments.
    """
    out: list[int] = []
    run: list[str] = []
    for c in [*points, BAD_BYTE]:
        if c < BAD_BYTE:
            if not (drop and c in _IGNORABLE):
                run.append(chr(c))
            continue
        text = _normal("".join(run), normalize, casefold)
        out += [ord(x) for x in text if not (drop and ord(x) in _IGNORABLE)]
        out.append(c)
        run = []
    return out[:-1]


def words(points: Iterable[int]) -> list[str]:
    """Return the tokens: runs of letters, marks, numbers and "_"; single letters of scripts without
    spaces."""
    tokens: list[str] = []
    state = "gap"  # gap | run | unspaced
    for c in points:
        category = unicodedata.category(chr(c)) if c < BAD_BYTE else "Cn"
        if category[0] not in "LMN" and c != 0x5F:
            state = "gap"
        elif category[0] == "M" and state != "gap":
            tokens[-1] += chr(c)
        elif category[0] != "M" and category != "Nd" and c in _UNSPACED:
            tokens.append(chr(c))
            state = "unspaced"
        elif state == "run":
            tokens[-1] += chr(c)
        else:
            tokens.append(chr(c))
            state = "run"
    return tokens


def characters(points: Iterable[int]) -> list[int]:
    """Return the code points with runs of white space as single blanks, none at either end."""
    out: list[int] = []
    blank = False
    for c in points:
        if c in _SPACES:
            blank = bool(out)
            continue
        if blank:
            out.append(0x20)
        blank = False
        out.append(c)
    return out


def whole_shingle(tokens: list[int]) -> int:
    """Return the hash of one shingle of all token hashes."""
    total = 0
    for token in tokens:
        total = total * P + token & MASK
    return mix64(total)


def tokens(data: bytes, kind: int, normalize: int, casefold: bool) -> list[int]:
    """Return the token hashes of one text. kind: 0 words, 1 chars; normalize: 0 none, 1 nfc, 2 nfkc."""
    form = ("none", "nfc", "nfkc")[normalize]
    points = clean(decode(data), form, casefold, drop=kind == 0 and normalize != 0)
    if kind == 0:
        return [hash64(word.encode("utf-8", "surrogatepass")) for word in words(points)]
    return [mix64(c + K1 & MASK) for c in characters(points)]


def shingle_text(data: bytes, kind: int, n: int, normalize: int, casefold: bool) -> tuple[list[int], int]:
    """Return the shingle hashes and the state of one text."""
    found = tokens(data, kind, normalize, casefold)
    if not found:
        return [], EMPTY
    if len(found) < n:
        return [whole_shingle(found)], SHORTENED
    return [whole_shingle(found[i : i + n]) for i in range(len(found) - n + 1)], PRESENT


def shingle_texts(
    data: U8, offsets: I64, kind: int, n: int, normalize: int, casefold: bool
) -> tuple[U64, I64, U8]:
    """Return what kernels.shingle_texts returns."""
    whole = data.tobytes()
    found = [
        shingle_text(whole[a:b], kind, n, normalize, casefold)
        for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]
    hashes = np.array([h for row, _ in found for h in row], np.uint64)
    ptr = np.cumsum([0, *(len(row) for row, _ in found)]).astype(np.int64)
    return hashes, ptr, np.array([state for _, state in found], np.uint8)
