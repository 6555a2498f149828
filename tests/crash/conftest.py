"""How often the crash tests kill."""

import pytest


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """20 kills a test, 200 with --long."""
    return 200 if request.config.getoption("--long") else 20
