"""A database of its own, and the command as a user runs it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex


@pytest.fixture
def db():
    with simindex.open(":memory:") as database:
        yield database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a file may be made."""
    return tmp_path / "t.simdb"


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `simindex ARGUMENT...` in the test's folder; the process as it ended."""

    def run(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "simindex.cli.main", *map(str, arguments)],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    """Write rows as JSON lines; the file's path."""

    def write(name: str, rows: list[dict[str, Any]]) -> Path:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path / name

    return write
