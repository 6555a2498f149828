"""From text to signature (word 3-grams, k = 128).

Beside Python tokenising with rensa's or FastSketchLSH's sketch.
"""

import json
from pathlib import Path

import FastSketchLSH
import rensa
from measure import Row, paired

from simindex import features, sketch


def shingles(text: str) -> list[str]:
    words = text.lower().split()
    if len(words) < 3:
        return [" ".join(words)]
    return [" ".join(words[i : i + 3]) for i in range(len(words) - 2)]


def read(path: Path, limit_bytes: int) -> list[str]:
    texts, size = [], 0
    with path.open("rb") as f:
        for line in f:
            texts.append(json.loads(line)["text"])
            size += len(line)
            if size > limit_bytes:
                break
    return texts


def rows(data: Path) -> list[Row]:
    books = [
        t[i : i + 20_000]
        for t in read(data / "books_sample.jsonl", 16_000_000)
        for i in range(0, len(t), 20_000)
    ]
    small = [t[i : i + 600] for t in books for i in range(0, len(t) - 599, 600)]
    cases = {
        "books, 20,000 characters (bar 400 MB/s)": books,
        "600-byte documents (bar 200 MB/s)": small,
        "debdesc": read(data / "debdesc.jsonl", 20_000_000),
        "debdesc non-Latin (wish 150 MB/s)": read(data / "debdesc_nonlatin.jsonl", 14_000_000),
        "aozora, Japanese (wish 150 MB/s)": read(data / "aozora_ja_sample.jsonl", 8_000_000),
    }
    settings = features.TextSettings(shingle="words:3")
    family = sketch.family("fastsim/1", {"k": 128, "slots": 8})
    peer = FastSketchLSH.FastSimilaritySketch(size=128, seed=42)
    out = []
    for case, texts in cases.items():
        size = sum(len(t.encode()) for t in texts) / 1e6
        ours, peers, ratio = paired(
            lambda t=texts: family.sign(features.text_features(t, settings)),
            {
                "Python + rensa": lambda t=texts: rensa.RMinHash.digest_matrix_from_token_sets(
                    [shingles(x) for x in t], 128, 42
                ),
                "Python + FastSketchLSH": lambda t=texts: peer.batch([shingles(x) for x in t], num_threads=1),
            },
            runs=3,
        )
        speeds = {name: size / t for name, t in peers.items()}
        out.append(Row("text", case, "MB/s", size / ours, speeds, ratio, bar="10 x the fastest peer"))
    return out
