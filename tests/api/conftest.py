"""A database of its own, and collections of sets in it."""

import pytest

import simindex
from simindex.api import Collection, Database


@pytest.fixture
def db():
    with simindex.open(":memory:") as database:
        yield database


@pytest.fixture
def sets(db: Database) -> Collection:
    """Sets of tokens under str keys."""
    return db.create_collection("sets", {"tags": simindex.tokens(threshold=0.5)})


@pytest.fixture
def numbers(db: Database) -> Collection:
    """Sets of tokens under int keys, scores from estimates."""
    field = simindex.tokens(threshold=0.5, verify="estimate")
    return db.create_collection("numbers", {"tags": field}, key="int")
