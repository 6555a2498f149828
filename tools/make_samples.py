"""Choose the sample corpus that ships with the package from the larger corpora with truth.

usage: make_samples.py FOLDER    (licenses, sotu, gesetze_de_3versions and poems_zh_sample as .jsonl,
    the truths as .tsv)

Whole families of near-duplicates are taken, and as many items that have none. Deterministic: same input,
same bytes.
"""

import json
import random
import sys
from pathlib import Path

import zstandard

TARGET = Path(__file__).parent.parent / "simindex" / "samples" / "corpus.jsonl.zst"
# set, file, truth, items in families, items alone, longest text in characters
PARTS = (
    ("licenses", "licenses", "licenses.truth_w3", 500, 500, 4000),
    ("gesetze", "gesetze_de_3versions", "gesetze_de_3versions.truth_w3", 90, 30, 8000),
    ("poems", "poems_zh_sample", "poems_zh_sample.truth_c5", 700, 1200, 2000),
    ("sotu", "sotu", None, 0, 6, 40000),
)


def families(path: Path, known: set[str]) -> list[list[str]]:
    """Return the components of pairs at or above 0.8 among known ids."""
    parent = {name: name for name in known}

    def find(x: str) -> str:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    with path.open(encoding="utf-8") as file:
        next(file)
        for line in file:
            a, b, inter, union, _ = line.split("\t")
            if a in known and b in known and int(inter) >= 0.8 * int(union):
                parent[find(a)] = find(b)
    groups: dict[str, list[str]] = {}
    for name in sorted(known):
        groups.setdefault(find(name), []).append(name)
    return sorted(groups.values())


def main() -> None:
    folder = Path(sys.argv[1])
    chooser = random.Random(1)
    out: list[dict[str, str]] = []
    for part, name, truth, related, alone, longest in PARTS:
        with (folder / f"{name}.jsonl").open(encoding="utf-8") as file:
            rows = {row["id"]: row for row in map(json.loads, file) if 20 <= len(row["text"]) <= longest}
        groups = families(folder / f"{truth}.tsv", set(rows)) if truth else [[key] for key in sorted(rows)]
        chooser.shuffle(groups)
        chosen: set[str] = set()
        left = {True: related, False: alone}
        for group in groups:
            is_family = len(group) > 1
            if len(group) <= min(left[is_family], 12):
                chosen.update(group)
                left[is_family] -= len(group)
        for key, row in rows.items():
            if key in chosen:
                lang = row.get("lang") or {"gesetze": "de", "poems": "zh"}.get(part, "en")
                out.append({"id": f"{part}/{key}", "text": row["text"], "lang": lang, "set": part})
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in out).encode()
    TARGET.write_bytes(zstandard.ZstdCompressor(level=19).compress(data))
    print(f"{len(out)} items, {len(data)} bytes, {TARGET.stat().st_size} compressed")


main()
