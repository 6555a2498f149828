"""usage: kill_rounds.py FOLDER ROUNDS. Kills dedup over FOLDER/in.jsonl at random moments; prints what
happened as JSON.

Each run is a forked process that the kernel kills (SIGALRM with its default action: no cleanup of any kind)
after a random part of the time that a whole run takes. After one to three kills the same run is let to its
end, and its outputs are compared with those of a run that nothing disturbed.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from simindex.workflows.dedup import Options, dedup, ingest
from simindex.workflows.io.jsonl import JsonLines

OUTPUTS = ("out.jsonl", "c.jsonl", "bad.jsonl")


def run(folder: Path, seconds: float | None) -> bool:
    """Run dedup in a process of its own, killed after `seconds`; return whether it came to its end."""
    child = os.fork()
    if child == 0:
        if seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-4))
        code = 1
        try:
            names = {"clusters": str(folder / "c.jsonl"), "rejects": str(folder / "bad.jsonl")}
            source, out = str(folder / "in.jsonl"), str(folder / "out.jsonl")
            dedup(
                Options(inputs=(source,), output=out, key="id", on_error="skip", threads=2, sample=0, **names)
            )
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"a run failed with {os.WEXITSTATUS(status)}")
    return not os.WIFSIGNALED(status)


def main() -> None:
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    ingest.COMMIT_BYTES = 40_000
    JsonLines.__init__.__defaults__ = (10_000,)
    began = time.perf_counter()
    run(folder, None)
    whole = time.perf_counter() - began
    want = [(folder / name).read_bytes() for name in OUTPUTS]
    chance = random.Random(4)
    kills = states = wrong = 0
    for attempt in range(rounds):
        for name in OUTPUTS:
            (folder / name).unlink(missing_ok=True)
        for _ in range(1 + attempt % 3):
            if run(folder, whole * chance.random()) or (folder / "out.jsonl").exists():
                break
            kills += 1
            states += (folder / "out.jsonl.partial").exists()
        if not (folder / "out.jsonl").exists():
            run(folder, None)
        wrong += [(folder / name).read_bytes() for name in OUTPUTS] != want
        for path in folder.glob("*.partial*"):  # of a kill between the last rename and the end
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    print(json.dumps({"kills": kills, "states": states, "wrong": wrong}))


main()
