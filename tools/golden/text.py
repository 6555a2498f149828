"""Golden bytes of hashes and shingles: made by the plain twin (needs a Python with the package's Unicode
version)."""

import struct

from simindex.kernels.reference import text as twin

STRINGS = [
    b"",
    b"a",
    b"\0",
    b"abcdefg",
    b"abcdefgh",
    b"abcdefghi",
    b"0123456789abcdef",
    b"0123456789abcdefg",
    b"x" * 100,
]
TEXTS = [
    text.encode("utf-8", "surrogatepass")
    for text in (
        "",
        " \n\t",
        "!!!",
        "cat",
        "one two three four",
        "The Quick_Brown fox, 3 times: the quick_brown FOX!",
        "Cafe\u0301 Zu\u0308rich Caf\u00e9 Z\u00fcrich STRASSE stra\u00dfe",
        "\uff21\uff22\uff23\uff11\uff12\uff13 Zei\u00adtung \ufb01ne \u0390 \u1fb3",
        "\u041c\u043e\u0441\u043a\u0432\u0430 \u0418\u0306 \u0645\u0631\u062d\u0628\u0627 "
        "\u05e9\u05c1\u05dc\u05d5\u05dd",
        "\u6771\u4eacabc\u30ab\u3099 \u0e01\u0e33\u0e25\u0e31\u0e07 \u1100\u1161\u11a8\uac01",
        "abc \ud835 def",
    )
] + [b"abc \xff\xfe def", b"nul \0 byte", b"cut \xe2\x82"]
SETTINGS = [
    (kind, n, form, fold)
    for kind in (0, 1)
    for n in (1, 3, 5)
    for form in (0, 1, 2)
    for fold in (False, True)
]


def files() -> dict[str, bytes]:
    hashes = [twin.hash64(text, seed) for seed in (0, 1) for text in STRINGS]
    for kind, n, form, fold in SETTINGS:
        for text in TEXTS:
            hashes += twin.shingle_text(text, kind, n, form, fold)[0]
    return {"text_1.bin": struct.pack(f"<{len(hashes)}Q", *hashes)}
