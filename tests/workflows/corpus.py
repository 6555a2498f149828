"""Made-up corpora whose near-duplicates are known by construction, and the exact answer by brute force."""

import json
import random
from pathlib import Path
from typing import Any

THRESHOLD = 0.8


def shingles(text: str, n: int = 3) -> set[tuple[str, ...]]:
    """Words of plain ASCII letters and digits only: here every tokeniser agrees."""
    words = text.lower().split()
    if len(words) < n:
        return {tuple(words)} if words else set()
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def jaccard(a: str, b: str, n: int = 3) -> float:
    x, y = shingles(a, n), shingles(b, n)
    return len(x & y) / len(x | y) if x or y else 0.0


def texts(count: int, seed: int, related: float = 0.5, words: int = 60) -> list[str]:
    """Return texts; a share `related` are copies of an earlier one, exact or with one word changed at an end.

    So pairs are either far above 0.8 or far below it: buckets find them all.
    """
    chance = random.Random(seed)
    out: list[str] = []
    for _ in range(count):
        if out and chance.random() < related:
            copy = chance.choice(out).split()
            if copy and chance.random() < 0.5:
                copy[-1] = f"x{chance.randrange(1000)}"
            out.append(" ".join(copy))
        else:
            out.append(
                " ".join(f"w{chance.randrange(5000)}" for _ in range(chance.randrange(words // 2, words)))
            )
    return out


def components(items: list[str], threshold: float = THRESHOLD, n: int = 3) -> list[int]:
    """Return the first item of each item's component of pairs at or above the threshold."""
    sets = [shingles(text, n) for text in items]
    parent = list(range(len(items)))

    def find(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for i, a in enumerate(sets):
        for j in range(i):
            b = sets[j]
            if not a or not b or min(len(a), len(b)) < threshold * max(len(a), len(b)):
                continue
            inter = len(a & b)
            if inter >= threshold * (len(a) + len(b) - inter):
                x, y = find(i), find(j)
                parent[max(x, y)] = min(x, y)
    return [find(i) for i in range(len(items))]


def write_lines(path: Path, items: list[str], **more: Any) -> list[bytes]:
    """Write JSON lines with an id; return the lines."""
    lines = [
        json.dumps({"id": f"d{i}", "text": text, "n": i} | more).encode() + b"\n"
        for i, text in enumerate(items)
    ]
    path.write_bytes(b"".join(lines))
    return lines
