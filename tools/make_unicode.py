"""Write csrc/unicode_tables.h from this Python's unicodedata. Run only to move to another Unicode version.

A new version changes signatures of texts with new characters, so it needs a new name of the text settings.
The shape of the tables is described in csrc/unicode.h.
"""

import importlib.util
import sys
import unicodedata
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "simindex" / "kernels"
LIMIT = (
    0x40000  # above: private use, unassigned and the ignorable E0000..E0FFF, which unicode.h decides by range
)
BLOCK = 128
WORD, UNSPACED, MARK, SPACE, IGNORABLE = 1, 2, 4, 8, 16
SIMPLE, COMPLEX, DROPPED = 0, 1, 2  # DROPPED: simple, and dropped where ignorable characters are
YPOGEGRAMMENI = "\u0345"
MODES = [(form, fold) for form in ("none", "nfc", "nfkc") for fold in (False, True)]


def load_scripts():
    spec = importlib.util.spec_from_file_location("scripts", PACKAGE / "reference" / "scripts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


scripts = load_scripts()
ignorable, unspaced, spaces = (
    scripts.expand(r) for r in (scripts.IGNORABLE, scripts.UNSPACED, scripts.SPACES)
)


def flags(c: int) -> int:
    category = unicodedata.category(chr(c))
    value = 0
    if category[0] in "LMN" or c == 0x5F:
        value |= WORD
        if category[0] == "M":
            value |= MARK
        elif c in unspaced and category != "Nd":
            value |= UNSPACED
    return value | SPACE * (c in spaces) | IGNORABLE * (c in ignorable)


def compositions() -> list[tuple[int, int, int]]:
    """Return (first, second, composite) of every primary composite but the Hangul syllables."""
    pairs = []
    for c in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and parts[0][0] != "<" and unicodedata.normalize("NFC", chr(c)) == chr(c):
            pairs.append((int(parts[0], 16), int(parts[1], 16), c))
    return sorted(pairs)


pairs = compositions()
seconds = {second for _, second, _ in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))


def is_simple(text: str) -> bool:
    """Whether no character of a normalised text can join one before it: a boundary lies before each."""
    return all(unicodedata.combining(x) == 0 and ord(x) not in seconds for x in text)


def fold_all(text: str) -> str:
    # U+0345 is folded when its segment is in canonical order (csrc/normalize.h).
    return "".join(x if x == YPOGEGRAMMENI else x.casefold() for x in text)


def mapping(c: int, form: str, fold: bool) -> tuple[int, str] | None:
    """Return how `c` is replaced: None (by itself), SIMPLE and the result, or COMPLEX and the
    decomposition."""
    x = chr(c)
    if 0xD800 <= c < 0xE000:
        return None
    if form == "none":
        return (SIMPLE, x.casefold()) if fold and x.casefold() != x else None
    parts = unicodedata.normalize("NFD", x)
    decompose = "NFD" if form == "nfc" else "NFKD"
    while True:
        after = unicodedata.normalize(decompose, fold_all(parts) if fold else parts)
        if after == parts:
            break
        parts = after
    result = unicodedata.normalize("NFC", parts)
    if not is_simple(result) or (fold and YPOGEGRAMMENI in parts):
        return (COMPLEX, parts)
    return None if result == x else (SIMPLE, result)


def emit(out: list[str], ctype: str, name: str, values: list[int]) -> None:
    out.append(f"static const {ctype} {name}[{len(values)}] = {{")
    line = ""
    for value in values:
        word = f"{value:d},"
        if len(line) + len(word) > 116:
            out.append(line)
            line = ""
        line += word
    out.append(line)
    out.append("};")


def main() -> None:
    entries: dict[tuple[int, str], int] = {}
    blocks: dict[tuple[int, ...], int] = {}

    def block(values: list[int]) -> int:
        return blocks.setdefault(tuple(values), len(blocks))

    stage1: list[int] = []
    longest = 0
    for form, fold in MODES:
        for start in range(0, LIMIT, BLOCK):
            values = []
            for c in range(start, start + BLOCK):
                found = mapping(c, form, fold)
                if found is None:
                    values.append(flags(c))
                else:
                    longest = max(longest, len(found[1]))
                    if flags(c) & IGNORABLE:
                        if found[0] != SIMPLE:
                            raise ValueError(f"U+{c:04X} is ignorable and no simple mapping")
                        found = (DROPPED, found[1])
                    values.append(256 + entries.setdefault(found, len(entries)))
            stage1.append(block(values))
    ccc1: list[int] = []
    decomposition1: list[int] = []
    for start in range(0, LIMIT, BLOCK):
        ccc1.append(block([unicodedata.combining(chr(c)) for c in range(start, start + BLOCK)]))
        values = []
        for c in range(start, start + BLOCK):
            parts = (
                chr(c)
                if 0xAC00 <= c < 0xD7A4 or 0xD800 <= c < 0xE000
                else unicodedata.normalize("NFD", chr(c))
            )
            known = parts == chr(c)
            values.append(0 if known else 256 + entries.setdefault((COMPLEX, parts), len(entries)))
        decomposition1.append(block(values))
    for c in range(LIMIT, sys.maxunicode + 1):
        odd = unicodedata.combining(chr(c)) or unicodedata.normalize("NFKC", chr(c)) != chr(c)
        if (odd and not 0xD800 <= c < 0xE000) or (flags(c) & ~IGNORABLE and not 0xE0100 <= c < 0xE01F0):
            raise ValueError(f"U+{c:04X} needs the tables to reach further")
    if 256 + len(entries) > 0xFFFF or len(blocks) > 0xFFFF:
        raise ValueError("tables outgrew 16 bits")

    offsets, pool = [], []
    for kind, text in entries:
        offsets.append(len(pool))
        pool += [len(text) << 2 | kind, *map(ord, text)]
    version = unicodedata.unidata_version
    out = [
        f"/* Generated by tools/make_unicode.py from Unicode {version}: do not edit. */",
        "#ifndef SI_UNICODE_TABLES_H",
        "#define SI_UNICODE_TABLES_H",
        "#include <stdint.h>",
        f'#define SI_UNICODE_VERSION "{version}"',
        f"#define SI_UNICODE_LONGEST {longest}",
        f"#define SI_UNICODE_PAIRS {len(pairs)}",
    ]
    emit(out, "uint16_t", "si_unicode_modes", stage1)
    emit(out, "uint16_t", "si_unicode_ccc", ccc1)
    emit(out, "uint16_t", "si_unicode_nfd", decomposition1)
    emit(out, "uint16_t", "si_unicode_blocks", [v for values in blocks for v in values])
    emit(out, "uint32_t", "si_unicode_offsets", offsets)
    emit(out, "uint32_t", "si_unicode_pool", pool)
    emit(out, "uint32_t", "si_unicode_pairs", [v for pair in pairs for v in pair])
    out.append("#endif")
    path = PACKAGE / "csrc" / "unicode_tables.h"
    path.write_text("\n".join(out) + "\n", encoding="ascii")
    print(
        f"{path}: Unicode {version}, {len(entries)} mappings, {len(blocks)} blocks, longest mapping {longest}"
    )


if __name__ == "__main__":
    main()
