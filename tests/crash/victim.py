"""A process that is killed with SIGKILL at a random moment, and what it had reported by then.

    def body(report):                  # runs in a forked child, until it is killed
        with Environment.open(path) as env:
            for number in range(start, start + 1000):
                ...one transaction...
                report(number)         # after the commit has returned

    reported = kill(body, rng)         # numbers that the child reported before it died, in order

A number may be reported at most once too few: the kill can fall between commit and report. So afterwards the
store must hold everything up to the last reported number, whole, and at most the next one, whole.
"""

import os
import random
import select
import signal
import struct
import time
import traceback
from collections.abc import Callable

Report = Callable[[int], None]
_NUMBER = struct.Struct("<q")
_PATIENCE = 60.0  # seconds without a report before the child counts as hung


def kill(
    body: Callable[[Report], object], rng: random.Random, most: int = 20, pause: float = 0.01
) -> list[int]:
    """Run `body(report)` in a child, kill it after 0 to `most` reports and 0 to `pause` seconds more.

    Returns the numbers reported. Fails if the child raises, hangs, or ends by itself before it reported that
    much.
    """
    enough = rng.randint(0, most)
    extra = rng.choice([0.0, rng.uniform(0, pause / 20), rng.uniform(0, pause)])
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(out)
            body(lambda number: os.write(into, _NUMBER.pack(number)) and None)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(into)
    reported: list[int] = []
    try:
        while len(reported) < enough and (number := _read(out, _PATIENCE)) is not None:
            reported.append(number)
        time.sleep(extra)
    finally:
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        while (number := _read(out, 0)) is not None:
            reported.append(number)
        os.close(out)
    if status > 0 or (status == 0 and len(reported) < enough):
        raise AssertionError(f"the child ended by itself with code {status} after {len(reported)} reports")
    return reported


def _read(file: int, patience: float) -> int | None:
    """Return the next number, or None at the end (or, with patience 0, when there is none)."""
    ready, _, _ = select.select([file], [], [], patience)
    if not ready:
        if patience:
            raise AssertionError(f"the child reported nothing for {patience:g} s")
        return None
    data = os.read(file, _NUMBER.size)
    return _NUMBER.unpack(data)[0] if data else None
