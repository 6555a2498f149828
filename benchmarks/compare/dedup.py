"""`simindex dedup` beside the two scripts, whole processes.

Wall time with start-up apart, memory, and items dropped against the exact truth.
The exact truth drops every item but the first of its component of pairs at or above the threshold.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Row

HERE = Path(__file__).parent
BANDS, ROWS, THRESHOLD = 16, 8, 0.8


_LAUNCHER = """
import os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status))
"""


def run(command: list[str]) -> tuple[float, float]:
    """Run to the end; return wall seconds and peak resident MB.

    A small process starts it: a child's peak counts the memory of the process that started it.
    """
    environment = os.environ | {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCHER, *command],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    wall, peak, code = done.stdout.split()
    if code != "0":
        raise RuntimeError(f"{command} failed: {done.stderr[-2000:]}")
    return float(wall), float(peak)


def truth_drops(truth: Path, order: dict[str, int]) -> set[int]:
    parent = list(range(len(order)))

    def find(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    with truth.open() as f:
        next(f)
        for line in f:
            a, b, inter, union, _ = line.split("\t")
            if int(inter) / int(union) >= THRESHOLD:
                x, y = find(order[a]), find(order[b])
                parent[max(x, y)] = min(x, y)
    return {i for i in range(len(order)) if find(i) != i}


def dropped(output: Path, order: dict[str, int]) -> set[int]:
    with output.open("rb") as f:
        kept = {order[json.loads(line)["id"]] for line in f}
    return set(range(len(order))) - kept


def rows(data: Path, runs: int = 3) -> list[Row]:
    source = data / "debdesc.jsonl"
    with source.open("rb") as f:
        order = {json.loads(line)["id"]: i for i, line in enumerate(f)}
    wanted = truth_drops(data / "debdesc.truth_w3.tsv", order)
    out = []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out.jsonl"
        tool = str(Path(sys.executable).parent / "simindex")
        settings = [
            "--threshold",
            str(THRESHOLD),
            "--bands",
            f"{BANDS},{ROWS}",
            "--threads",
            "1",
            "--quiet",
            "--force",
        ]
        base = [tool, "dedup", str(source), "-o", str(target), *settings]
        script = [str(source), str(target), str(BANDS), str(ROWS)]
        commands = {
            "exact": [*base, "--verify", "exact"],
            "estimate": [*base, "--verify", "estimate"],
            "rensa": [sys.executable, str(HERE / "dedup_rensa.py"), *script],
            "FastSketchLSH": [sys.executable, str(HERE / "dedup_fastsketch.py"), *script],
        }
        empty = Path(folder) / "empty.jsonl"
        empty.write_bytes(b"")
        start_up = {
            "simindex": statistics.median(
                run([tool, "dedup", str(empty), "-o", str(target), "--quiet", "--force"])[0] for _ in range(3)
            ),
            "rensa": statistics.median(
                run([sys.executable, "-c", "import rensa, orjson"])[0] for _ in range(3)
            ),
            "FastSketchLSH": statistics.median(
                run([sys.executable, "-c", "import FastSketchLSH, orjson, numpy"])[0] for _ in range(3)
            ),
        }
        wall: dict[str, list[float]] = {name: [] for name in commands}
        memory: dict[str, float] = {}
        quality: dict[str, dict[str, float]] = {}
        for _ in range(runs):
            for name, command in commands.items():
                target.unlink(missing_ok=True)
                seconds, megabytes = run(command)
                wall[name].append(seconds - start_up.get(name, start_up["simindex"]))
                memory[name] = max(memory.get(name, 0), megabytes)
                if name not in quality:
                    found = dropped(target, order)
                    right = len(found & wanted)
                    quality[name] = {
                        "dropped": len(found),
                        "recall": right / len(wanted),
                        "precision": right / max(1, len(found)),
                    }
    for mode in ("exact", "estimate"):
        ratio = {
            peer: statistics.median(t / m for t, m in zip(wall[peer], wall[mode], strict=True))
            for peer in ("rensa", "FastSketchLSH")
        }
        out.append(
            Row(
                "dedup", f"debdesc, verify={mode}", "s", statistics.median(wall[mode]),
                {p: statistics.median(wall[p]) for p in ratio}, ratio, bar="5 x (wish 8 x) the faster script",
                more={
                    "start_up_s": start_up, "peak_mb": memory, "quality": quality, "truth_drops": len(wanted),
                },
            )
        )  # fmt: skip
        out.append(
            Row(
                "dedup memory", f"debdesc, verify={mode}", "MB", memory[mode], {p: memory[p] for p in ratio},
                {p: memory[p] / memory[mode] for p in ratio}, bar="at most half of theirs",
            )
        )  # fmt: skip
        for figure in ("recall", "precision"):
            out.append(
                Row(
                    f"dedup {figure}", f"debdesc, verify={mode}", "of items dropped", quality[mode][figure],
                    {p: quality[p][figure] for p in ratio},
                    {p: quality[mode][figure] / quality[p][figure] for p in ratio}, bar="not below theirs",
                )
            )  # fmt: skip
    return out
