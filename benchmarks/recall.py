"""Measured recall and precision of threshold searches against exact truth, on every corpus that has one.

usage: python benchmarks/recall.py DATA [CORPUS...]
DATA: folder of NAME.jsonl and NAME.truth_w3.tsv (or truth_c5)

Every item of a corpus is a query. The shingles are those of the truth's own tokeniser, fed to a `tokens`
field, so that only signatures, buckets, filter and verification are measured. Columns: the recall that
`explain` states at the threshold and the measured share of all pairs at or above it, then the share of
reported pairs that are true.
"""

import argparse
import json
import re
import sys
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import numpy.typing as npt

import simindex

WORDS = re.compile(r"\w+")
CORPORA = {
    "debdesc": ("truth_w3", 0.5),
    "licenses": ("truth_w3", 0.7),
    "gesetze_de_3versions": ("truth_w3", 0.5),
    "irplag_java_5cases": ("truth_w3", 0.5),
    "debdesc_nonlatin": ("truth_c5", 0.5),
    "poems_zh_sample": ("truth_c5", 0.5),
    "instguide": ("truth_w3", 0.5),
    "django": ("truth_w3", 0.5),
}


def w3(text: str) -> list[str]:
    words = WORDS.findall(text.lower())
    if len(words) < 3:
        return [" ".join(words)] if words else []
    return [" ".join(words[i : i + 3]) for i in range(len(words) - 2)]


def c5(text: str) -> list[str]:
    flat = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    if len(flat) < 5:
        return [flat] if flat else []
    return [flat[i : i + 5] for i in range(len(flat) - 4)]


def pairs_of_truth(
    path: Path, order: dict[str, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    codes, scores = [], []
    with path.open(encoding="utf-8") as f:
        next(f)
        for line in f:
            a, b, inter, union, _ = line.rstrip("\n").split("\t")
            x, y = sorted((order[a], order[b]))
            codes.append(x * len(order) + y)
            scores.append(int(inter) / int(union))
    return np.array(codes, np.int64), np.array(scores)


def measure(data: Path, name: str, batch: int = 10_000) -> list[dict[str, object]]:
    kind, least = CORPORA[name]
    tokens = w3 if kind == "truth_w3" else c5
    with (data / f"{name}.jsonl").open(encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    order = {record["id"]: i for i, record in enumerate(records)}
    sets = [tokens(record["text"]) for record in records]
    truth, scores = pairs_of_truth(data / f"{name}.{kind}.tsv", order)
    n = len(records)
    out = []
    for verify in ("exact", "estimate"):
        for threshold in (0.5, 0.7, 0.8, 0.9):
            if threshold < least:
                continue
            with tempfile.TemporaryDirectory() as folder, simindex.open(Path(folder) / "recall.simdb") as db:
                items = db.create_collection(
                    "items", {"shingles": simindex.tokens(threshold=threshold, verify=verify)}, key="int"
                )
                for s in range(0, n, batch):
                    chunk = sets[s : s + batch]
                    items.put_many({"key": np.arange(s, s + len(chunk), dtype=np.uint64), "shingles": chunk})
                stated = items.explain(shingles=sets[0], threshold=threshold, plan="buckets").recall
                found = []
                for s in range(0, n, batch):
                    hits = items.search_many(
                        shingles=sets[s : s + batch], threshold=threshold, plan="buckets"
                    )
                    query = np.repeat(np.arange(s, s + len(hits.offsets) - 1), np.diff(hits.offsets))
                    other = np.asarray(hits.keys, np.int64)
                    mine = query < other
                    found.append(query[mine] * n + other[mine])
            reported = np.unique(np.concatenate(found))
            wanted = truth[scores >= threshold]
            right = np.isin(wanted, reported).sum()
            low = np.isin(reported, truth[scores >= least]).sum() if verify == "estimate" else right
            out.append(
                {
                    "corpus": name, "verify": verify, "threshold": threshold, "pairs": len(wanted),
                    "stated": float(stated), "recall": right / max(1, len(wanted)),
                    "precision": right / max(1, len(reported)), "reported": len(reported),
                    "reported pairs in the truth file": int(low),
                }
            )  # fmt: skip
            print(json.dumps(out[-1]), flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("corpora", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = options.corpora or [n for n in CORPORA if (options.data / f"{n}.jsonl").exists()]
    rows = [row for name in names for row in measure(options.data, name)]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    bad = [r for r in rows if r["recall"] < r["stated"] or (r["verify"] == "exact" and r["precision"] < 1.0)]
    for row in bad:
        print("below what was stated:", row, file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
