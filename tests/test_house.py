"""The rules of the house that a machine can check."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path
    for folder in ("simindex", "tests", "benchmarks", "tools")
    for ending in ("*.py", "*.pyx", "*.h")
    for path in (ROOT / folder).rglob(ending)
)
GENERATED = {"unicode_tables.h"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_is_longer_than_500_lines(path: Path) -> None:
    if path.name in GENERATED:
        return
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 500, f"{lines} lines: one file, one idea"


def test_every_stub_has_its_module_and_every_module_its_stub() -> None:
    kernels = ROOT / "simindex" / "kernels"
    assert {p.stem for p in kernels.glob("*.pyx")} == {p.stem for p in kernels.glob("*.pyi")}


def test_nothing_is_pickled() -> None:
    package = [p for p in SOURCES if p.is_relative_to(ROOT / "simindex")]
    assert not [p for p in package if "import pickle" in p.read_text(encoding="utf-8")]
