"""What every test shares: the long mode, the larger corpora, and a check of every store at the end of its test."""

import os
from pathlib import Path

import pytest

from simindex.kernels import dispatch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long mode too (minutes to hours)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="long mode only: run with --long")
    for item in items:
        if "long" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(params=dispatch.available())
def isa(request: pytest.FixtureRequest):
    """Run the test once at every instruction-set level of this machine."""
    with dispatch.forced(request.param):
        yield request.param


@pytest.fixture
def corpora() -> Path:
    """The folder of larger corpora with exact truth, unpacked; skips plainly where it is not set."""
    folder = os.environ.get("SIMINDEX_DATA")
    if not folder:
        pytest.skip("SIMINDEX_DATA is not set: the larger corpora are not on this machine")
    return Path(folder)


GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden():
    """Return the frozen bytes of a golden file; a missing file fails (only tools/make_golden.py writes them)."""

    def read(name: str) -> bytes:
        path = GOLDEN / name
        if not path.exists():
            pytest.fail(f"golden file {name} is missing: frozen bytes may not be remade by a test")
        return path.read_bytes()

    return read
