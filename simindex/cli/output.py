"""Printing: results on stdout (JSON on request), progress and summaries on stderr."""

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return str(value)


def print_json(value: Any) -> None:
    """Print one JSON value on stdout, on one line. Bytes appear as text, invalid ones escaped."""
    import orjson

    try:
        line = orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # lone surrogates, or integers beyond 64 bits
        import json

        line = json.dumps(value, default=_plain).encode()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """Print a table on stdout; tab-separated if stdout is no terminal."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(str(cell) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table

    made = Table(*columns, title=title)
    for row in rows:
        made.add_row(*(str(cell) for cell in row))
    Console().print(made, markup=False)


def facts(lines: Iterable[tuple[str, str]], to_stderr: bool = False) -> None:
    """Print named figures, one a line, aligned."""
    found = list(lines)
    width = max((len(name) for name, _ in found), default=0)
    for name, figure in found:
        print(f"{name:<{width}}  {figure}", file=sys.stderr if to_stderr else sys.stdout)


class ProgressBar:
    """A bar with rate and time left on stderr; only where stderr is a terminal. A context manager.

    Called with (stage, done, of how much or None) as the workflows do. rich is imported at the first call
    that
    comes a third of a second after the start: short runs do without.
    """

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted and sys.stderr.isatty()
        self._start = time.monotonic()
        self._bar: Any = None
        self._stage = ""
        self._task: Any = None

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if not self._is_wanted or (self._bar is None and time.monotonic() - self._start < 0.3):
            return
        if self._bar is None:
            self._bar = self._made()
            self._bar.start()
        if stage != self._stage:
            if self._task is not None:
                self._bar.update(self._task, visible=False)
            self._stage = stage
            self._task = self._bar.add_task(stage, total=total)
        self._bar.update(self._task, completed=done, total=total)

    def _made(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.progress import TransferSpeedColumn as Speed

        return Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), Speed(), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
