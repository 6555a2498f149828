"""The script that a user of rensa would write.

Lower, split, word 3-grams, full-set R-MinHash, its LSH, keep the first.

usage: dedup_rensa.py IN.jsonl OUT.jsonl BANDS ROWS
No verification (rensa's LSH has none in this path). The `*_rho` functions sample tokens and are not used.
"""

import sys

import orjson
import rensa


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
    matrix = rensa.RMinHash.digest_matrix_from_token_sets(sets, k, 42)
    lsh = rensa.RMinHashLSH(threshold=0.8, num_perm=k, num_bands=bands)
    flags = lsh.insert_matrix_and_query_duplicate_flags(matrix)
    # Flags mark the first of a family too: ask for the neighbours of the marked rows and keep those without
    # an earlier one.
    marked = [i for i, flag in enumerate(flags) if flag and sets[i]]
    sketches = rensa.RMinHash.from_token_sets([sets[i] for i in marked], k, 42)
    dropped = set()
    for i, neighbours in zip(marked, lsh.query_all(sketches), strict=True):
        if min(neighbours) < i:
            dropped.add(i)
    with open(target, "wb") as f:
        f.writelines(line for i, line in enumerate(lines) if i not in dropped)


main()
