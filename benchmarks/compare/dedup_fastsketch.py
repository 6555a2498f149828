"""The script that a user of FastSketchLSH would write.

Lower, split, word 3-grams, its sketch, its LSH, keep the first.

usage: dedup_fastsketch.py IN.jsonl OUT.jsonl BANDS ROWS
No verification (FastSketchLSH has none).
"""

import sys

import FastSketchLSH
import numpy as np
import orjson


def shingles(text: str) -> list[str]:
    words = text.lower().split()
    if len(words) < 3:
        return [" ".join(words)] if words else []
    return [" ".join(words[i : i + 3]) for i in range(len(words) - 2)]


def main() -> None:
    source, target, bands, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    k = bands * rows
    with open(source, "rb") as f:
        lines = f.readlines()
    sets = [shingles(orjson.loads(line)["text"]) for line in lines]
    filled = np.array([i for i, s in enumerate(sets) if s])
    sketcher = FastSketchLSH.FastSimilaritySketch(size=k, seed=42)
    matrix = sketcher.batch([sets[i] for i in filled], num_threads=1)
    lsh = FastSketchLSH.LSH(num_perm=k, num_bands=bands, num_threads=1)
    lsh.insert(matrix)
    flat, indptr = lsh.query(matrix, format="csr")
    flat, indptr = np.asarray(flat), np.asarray(indptr)
    first = np.minimum.reduceat(flat, indptr[:-1].astype(np.int64))
    dropped = set(filled[first < np.arange(len(filled))].tolist())
    with open(target, "wb") as f:
        f.writelines(line for i, line in enumerate(lines) if i not in dropped)


main()
