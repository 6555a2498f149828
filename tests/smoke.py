"""A bare installation works: run as a plain script, with no test package in sight."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import simindex


def main() -> None:
    text = (
        "the blue canal boat passed under the old stone bridge at noon and "
        "nobody saw who was steering it that day"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "smoke.simdb"
        with simindex.open(path) as db:
            news = db.create_collection("news", {"body": simindex.text(threshold=0.7)})
            news.put("a", {"body": text, "lang": "en"})
            news.put("b", {"body": text + " again"})
            news.put("c", {"body": "something else entirely, about ships and the weather of the coming week"})
        with simindex.open(path, mode="r") as db:
            hits = db["news"].search(body=text)
            if [hit.key for hit in hits] != ["a", "b"] or hits[0].score != 1.0:
                raise SystemExit(f"wrong hits: {hits}")
            if db.check():
                raise SystemExit("the store has findings")
        source = Path(folder) / "in.jsonl"
        source.write_text("".join(json.dumps({"text": t}) + "\n" for t in (text, text, "other words here")))
        target = Path(folder) / "out.jsonl"
        tool = Path(sys.executable).parent / "simindex"
        subprocess.run([tool, "dedup", source, "-o", target, "--quiet"], check=True)
        if len(target.read_text().splitlines()) != 2:
            raise SystemExit("dedup kept the wrong number of lines")
    print("smoke test: fine")


main()
