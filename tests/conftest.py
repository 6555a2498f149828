"""What every test shares: the long mode, the larger corpora, and a check of every store at a test's end."""

import os
import sys
from pathlib import Path

import pytest

from simindex.kernels import dispatch

# Spawned children import test modules by name. Last on the path, so that an installed simindex wins.
sys.path.append(str(Path(__file__).parent.parent))
# Children started with -c or -m use the installed simindex too, not the uncompiled sources where they stand.
os.environ["PYTHONSAFEPATH"] = "1"


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
    """Return the frozen bytes of a golden file; a missing file fails (tools/make_golden.py writes them)."""

    def read(name: str) -> bytes:
        path = GOLDEN / name
        if not path.exists():
            pytest.fail(f"golden file {name} is missing: frozen bytes may not be remade by a test")
        return path.read_bytes()

    return read


@pytest.fixture(autouse=True)
def checked_stores(request: pytest.FixtureRequest):
    """Check every database that the test opened: before its first close, or at the end of the test.

    A test that damages a file on purpose carries the mark `damages`.
    """
    from simindex.api import Database

    opened: list[Database] = []
    make, close = Database.__init__, Database.close

    def checked_close(db: Database) -> None:
        if db in opened:
            opened.remove(db)
            if "damages" not in request.keywords:
                assert db.check() == []
        close(db)

    def recorded(db: Database, *args: object, **named: object) -> None:
        make(db, *args, **named)
        opened.append(db)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "__init__", recorded)
        patch.setattr(Database, "close", checked_close)
        yield
        for db in list(opened):
            checked_close(db)
