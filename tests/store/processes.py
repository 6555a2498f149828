"""Other processes for tests: a forked child that runs a function, a fresh interpreter that runs a text."""

import contextlib
import os
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator

READY = b"ready\n"


def in_child(body: Callable[[], object], leave: Callable[[int], object] = os._exit) -> int:
    """Run body() in a forked child; return its exit code (0: it returned True).

    leave: how the child ends: os._exit runs no finalisers, sys.exit runs them all.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if body() is True else 2
        except BaseException:
            traceback.print_exc()
        finally:
            leave(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextlib.contextmanager
def interpreter(text: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run a text in a fresh interpreter; it has printed "ready" when the block begins, and is dead after
    it.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == READY, "the other process did not get ready"
        yield process
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
        process.wait()


def run(text: str, *arguments: object, **options: object) -> str:
    """Run a text in a fresh interpreter and return what it printed; fails if it failed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
