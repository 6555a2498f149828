"""Run the comparison, print a table, write JSON and Markdown to benchmarks/results (run.sh calls it)."""

import argparse
import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from machine import describe  # noqa: E402
from measure import Row  # noqa: E402

LANES = ("sign", "text", "ingest", "search_many", "search", "dedup")


def run(lane: str, data: Path | None, items: int) -> list[Row]:
    if lane == "sign":
        import sign

        return sign.rows()
    if lane in ("ingest", "search_many"):
        import store

        return store.ingest(items) if lane == "ingest" else store.lookup()
    if data is None:
        print(f"{lane}: needs --data, left out", file=sys.stderr)
        return []
    if lane == "text":
        import text

        return text.rows(data)
    if lane == "search":
        import store
        from text import read

        texts = [
            t[i : i + 1000]
            for t in read(data / "books_sample.jsonl", 16_000_000)
            for i in range(0, len(t) - 999, 1000)
        ]
        return store.one_text(texts)
    import dedup

    return dedup.rows(data)


def table(rows: list[Row]) -> str:
    lines = [
        "| lane | case | unit | ours | peers | ours against each | bar |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        peers = ", ".join(f"{n} {v:,.4g}" for n, v in r.peers.items())
        ratio = ", ".join(f"{n} {v:.2f} x" for n, v in r.ratio.items())
        lines.append(f"| {r.lane} | {r.case} | {r.unit} | {r.ours:,.4g} | {peers} | {ratio} | {r.bar} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lanes", nargs="*", default=list(LANES), help=f"of {', '.join(LANES)}")
    parser.add_argument("--data", type=Path, help="folder of the unpacked corpora")
    parser.add_argument("--items", type=int, default=1_000_000, help="items of the ingest lane")
    parser.add_argument("--name", default="compare", help="name of the result files")
    options = parser.parse_args()
    rows: list[Row] = []
    for lane in options.lanes or LANES:
        if lane not in LANES:
            parser.error(f"unknown lane {lane!r}: lanes are {', '.join(LANES)}")
        found = run(lane, options.data, options.items)
        print(table(found), flush=True)
        rows += found
    results = HERE.parent / "results"
    results.mkdir(exist_ok=True)
    machine = describe(("simindex", "numpy", "lmdb", "rensa", "FastSketchLSH", "datasketch"))
    stamp = {"date": time.strftime("%Y-%m-%d"), "machine": machine, "rows": [r.as_dict() for r in rows]}
    (results / f"{options.name}.json").write_text(json.dumps(stamp, indent=1) + "\n")
    head = (
        f"One thread each, side by side in one process; {machine['cpu']}, Python {machine['python']}. "
        "Ratios above 1: ours ahead.\n\n"
    )
    (results / f"{options.name}.md").write_text(head + table(rows))


main()
