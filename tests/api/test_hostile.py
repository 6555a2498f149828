"""Whatever a caller passes, the answer is a documented result or a clear error, and the file stays sound.

A seeded fuzzer calls public methods with values that have no business there; then the forms of columns that
carry offsets, which must be refused whole, before they are cut into batches.
"""

import datetime
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import FeatureError, KeyTypeError, SchemaError, SimindexError, shown
from simindex.types import Packed


class Boom(Exception):
    """Raised by the caller's own objects: it passes through as it is."""


class BadRepr:
    def __repr__(self) -> str:
        raise Boom("repr")


class BadMapping(Mapping):
    def __getitem__(self, name: str) -> Any:
        raise Boom("mapping")

    def __iter__(self) -> Iterator[str]:
        return iter(["key", "body"])

    def __len__(self) -> int:
        return 2


class Text(str):
    pass


def breaks_off() -> Iterator[str]:
    yield "a"
    raise Boom("generator")


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


CYCLE: list[Any] = []
CYCLE.append(CYCLE)

VALUES: list[Callable[[], Any]] = [
    lambda: None,
    lambda: True,
    lambda: -1,
    lambda: 2**64,
    lambda: 2**70,
    lambda: 10**5000,
    lambda: 0.5,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: 1j,
    lambda: "",
    lambda: "a\x00b",
    lambda: "\ud800 x y",
    lambda: "k" * 70_000,
    lambda: Text("sub"),
    lambda: b"",
    lambda: b"\xff\xfe",
    lambda: bytearray(b"a b"),
    lambda: memoryview(b"abc"),
    lambda: np.int8(-3),
    lambda: np.uint64(2**64 - 1),
    lambda: np.float32(0.5),
    lambda: np.str_("s"),
    lambda: np.array(3),
    lambda: np.array("x"),
    lambda: np.array(None),
    lambda: object(),
    lambda: BadRepr(),
    lambda: datetime.date(2020, 1, 1),
    lambda: {1, 2},
    lambda: {(1, 2): 3},
    lambda: CYCLE,
    lambda: nested(2000),
    lambda: nested(600),
    lambda: breaks_off(),
    lambda: BadMapping(),
    lambda: range(3),
    lambda: np.zeros((2, 2), np.uint64),
    lambda: np.zeros((3, 128), np.uint8),
    lambda: np.zeros(128, np.uint8),
    lambda: np.arange(8, dtype=np.uint64)[::2],
    lambda: np.arange(4, dtype=">u8"),
    lambda: np.array([1.5, 2]),
    lambda: np.zeros(0, np.uint64),
    lambda: np.array(["a", None, 3], object),
    lambda: np.array([1, -1]),
    lambda: (np.arange(9, dtype=np.uint64), np.array([0, 5, 3])),
    lambda: (np.arange(9), np.array([], np.int64)),
    lambda: Packed(np.zeros(9, np.uint8), np.array([0, 99])),
    lambda: ["a", "b"],
    lambda: [1, "a", None],
    lambda: {"a": 1},
    lambda: [],
    lambda: {},
    lambda: iter(["a", "b"]),
    lambda: len,
    lambda: slice(1, 2),
]
NAMES: list[Any] = [
    "body",
    "tags",
    "kept",
    "lang",
    "key",
    "",
    "\ud800",
    "a\x00",
    "k",
    "bodi",
    5,
    None,
    (1, 2),
]


class Fuzzer:
    """Calls methods at random and collects what is neither a result nor a clear error."""

    def __init__(self, db: simindex.Database, seed: int) -> None:
        self.r = random.Random(seed)
        self.db = db
        self.faults: list[str] = []
        fields = {
            "body": simindex.text(threshold=0.8),
            "tags": simindex.tokens(threshold=0.5),
            "kept": simindex.text(threshold=0.8, keep=True, verify="estimate"),
        }
        self.collections = [db.create_collection(kind, fields, key=kind) for kind in ("str", "bytes", "int")]

    def value(self) -> Any:
        return self.r.choice(VALUES)()

    def key(self) -> Any:
        return self.value() if self.r.random() < 0.3 else self.r.choice(["k1", "k2", b"k1", b"k2", 1, 2])

    def item(self) -> Any:
        if self.r.random() < 0.1:
            return self.value()
        item: dict[Any, Any] = {"body": "one two three four", "tags": ["a", "b"]}
        for _ in range(self.r.randrange(3)):
            item[self.r.choice(NAMES)] = self.value()
        return item

    def record(self) -> Any:
        item = self.item()
        return {**item, "key": self.key()} if isinstance(item, dict) else item

    def columns(self) -> dict[Any, Any]:
        columns: dict[Any, Any] = {"key": [self.key(), self.key()] if self.r.random() < 0.8 else self.value()}
        for name in self.r.sample(NAMES[:4], 2):
            columns[name] = self.value() if self.r.random() < 0.5 else [self.value(), "x y z"]
        return columns

    def options(self, names: dict[str, Any], often: float = 0.2) -> dict[str, Any]:
        chosen = [name for name in names if self.r.random() < often]
        return {n: self.value() if self.r.random() < 0.4 else self.r.choice(names[n]) for n in chosen}

    def step(self) -> None:
        c, r = self.r.choice(self.collections), self.r
        field = r.choice(["body", "tags", "kept"])
        search = {
            "threshold": [0.5, 0.9],
            "k": [1, 3],
            "exact": [True],
            "plan": ["scan", "buckets"],
            "budget": [9],
            "recall": [0.5],
            "accept": ["likely"],
            "where": [None],
            "radius": [None],
        }
        put = {
            "batch": [1, 2],
            "on_error": ["skip", "raise"],
            "on_duplicate": ["skip", "keep", "report"],
            "field": ["body", "tags"],
            "threshold": [0.9],
            "threads": [0, 1],
        }
        made = {
            "threshold": [0.8],
            "k": [64],
            "slots": [8, 16],
            "bands": [(8, 4)],
            "recall": [0.9],
            "force": [True],
            "shingle": ["chars:5"],
            "normalize": ["nfc"],
            "verify": ["exact"],
            "family": ["minhash/1"],
        }
        calls: dict[str, Callable[[], Any]] = {
            "put": lambda: c.put(self.key(), self.item()),
            "insert": lambda: c.insert(self.key(), self.item()),
            "update": lambda: c.update(self.key(), self.item()),
            "delete": lambda: c.delete(self.key()),
            "get": lambda: (c.get(self.key()), self.key() in c),
            "put_many": lambda: c.put_many([self.record() for _ in range(3)], **self.options(put)),
            "put_many of anything": lambda: c.put_many(self.value(), **self.options(put)),
            "put_many of columns": lambda: c.put_many(self.columns(), **self.options(put)),
            "search": lambda: c.search(**{field: self.value(), **self.options(search)}),
            "search_many": lambda: c.search_many(**{field: self.value(), **self.options(search)}),
            "search_many of two": lambda: c.search_many(
                **{field: [self.value(), "x"], **self.options(search)}
            ),
            "explain": lambda: str(c.explain(**{field: self.value(), **self.options(search)})),
            "compare": lambda: str(
                c.compare(self.key(), {field: self.value()}, *self.options({"f": [field]}).values())
            ),
            "collection": lambda: (self.value() in self.db, self.db[self.value()]),
            "drop_collection": lambda: self.db.drop_collection(self.value()),
            "create_collection": lambda: self.db.create_collection(
                self.value(), {"f": self.value()}, self.value()
            ),
            "exist_ok": lambda: self.db.create_collection(
                "str", {"f": simindex.text()}, exist_ok=self.value()
            ),
            "write": lambda: self.db.write(self.value()).__enter__().__exit__(None, None, None),
            "text": lambda: simindex.text(**self.options(made, 0.4)),
            "tokens": lambda: simindex.tokens(**self.options(made, 0.4)),
            "open": lambda: simindex.open(
                ":memory:",
                **self.options(
                    {
                        "mode": "w",
                        "timeout": [1],
                        "max_bytes": [None],
                        "durability": ["full"],
                        "force": [True],
                    }
                ),
            ).close(),
        }
        name = r.choice(list(calls))
        try:
            calls[name]()
        except SimindexError as error:
            if len(str(error)) > 1000:
                self.faults.append(f"{name}: a message of {len(str(error))} characters")
        except Boom:
            pass
        except KeyError as error:
            if "no item has key" not in str(error):
                self.faults.append(f"{name}: {error!r}")
        except Exception as error:
            inside = traceback.extract_tb(error.__traceback__)[-1]
            if not (isinstance(error, TypeError) and inside.filename == __file__):  # not Python's own refusal
                self.faults.append(f"{name}: {error!r:.200} at {inside.filename}:{inside.lineno}")


@pytest.mark.parametrize("seed", range(4))
def test_any_argument_gives_a_result_or_a_clear_error(tmp_path, seed: int) -> None:
    with simindex.open(tmp_path / "a.simdb", durability="relaxed") as db:
        fuzzer = Fuzzer(db, seed)
        for _ in range(8):
            for _ in range(60):
                fuzzer.step()
            assert db.check() == []
            for collection in fuzzer.collections:  # what was taken can be read back
                assert len([collection[key] for key in collection]) == len(collection)
        assert fuzzer.faults == []


def test_shown_never_raises_and_is_short() -> None:
    for value in (CYCLE, nested(5000), BadRepr(), 10**5000, "x" * 10**6, {1: CYCLE}, [BadRepr()], None):
        assert 0 < len(shown(value)) <= 60


@pytest.fixture
def sets():
    with simindex.open(":memory:") as db:
        yield db.create_collection("sets", {"tags": simindex.tokens(threshold=0.5)}, key="int")


HASHES = np.arange(10, dtype=np.uint64)


@pytest.mark.parametrize("batch", [1, 10_000])
@pytest.mark.parametrize(
    ("hashes", "ptr"),
    [
        (HASHES, [0, 5, 3]),
        (HASHES, [0, 3, 11]),
        (HASHES, [-1, 3, 10]),
        (HASHES, [1, 3, 10]),
        (HASHES, [0, 3, 9]),
        (HASHES, [0, 3, 2**62]),
        (HASHES, np.array([0, 2**64 - 1, 10], np.uint64)),
        (HASHES, [0.0, 3.0, 10.0]),
        (HASHES, [[0, 3, 10]]),
        (HASHES.astype(np.float64), [0, 3, 10]),
        (np.arange(-3, 7), [0, 3, 10]),
        (HASHES.reshape(2, 5), [0, 1, 2]),
    ],
)
def test_wrong_csr_columns_are_refused_whole(
    sets: simindex.Collection, hashes: Any, ptr: Any, batch: int
) -> None:
    with pytest.raises(FeatureError):
        sets.put_many({"key": [1, 2], "tags": (hashes, np.asarray(ptr))}, batch=batch)
    assert len(sets) == 0


@pytest.mark.parametrize("form", ["plain", "big-endian", "strided", "read-only", "signed", "small ptr"])
def test_any_whole_number_array_is_taken_as_csr(sets: simindex.Collection, form: str) -> None:
    hashes, ptr = HASHES.copy(), np.array([0, 3, 10])
    if form == "big-endian":
        hashes, ptr = hashes.astype(">u8"), ptr.astype(">i8")
    elif form == "strided":
        hashes, ptr = np.repeat(hashes, 2)[::2], np.repeat(ptr, 2)[::2]
    elif form == "read-only":
        hashes.flags.writeable = ptr.flags.writeable = False
    elif form == "signed":
        hashes = hashes.astype(np.int64)
    elif form == "small ptr":
        ptr = ptr.astype(np.uint8)
    sets.put_many({"key": [1, 2], "tags": (hashes, ptr)})
    assert [(hit.key, hit.score) for hit in sets.search(tags=[0, 1, 2])] == [(1, 1.0)]
    assert hashes.tolist() == list(range(10))
    assert ptr.tolist() == [0, 3, 10]


def test_packed_str_keys_must_be_utf8() -> None:
    with simindex.open(":memory:") as db:
        c = db.create_collection("c", {"body": simindex.text()})
        with pytest.raises(KeyTypeError, match="of packed keys"):
            c.put_many(
                {"key": Packed(np.frombuffer(b"ab\xff", np.uint8), np.array([0, 2, 3])), "body": ["x", "y"]}
            )
        assert len(c) == 0


def test_attributes_that_could_not_be_read_back_are_refused() -> None:
    with simindex.open(":memory:") as db:
        c = db.create_collection("c", {"body": simindex.text()})
        for value in ({(1, 2): 3}, {"deep": {(1,): 1}}, [{("a",): 1}]):
            with pytest.raises(FeatureError, match="'x'"):
                c.put("a", {"x": value})
        assert len(c) == 0


def test_bad_settings_of_open_are_schema_errors(tmp_path) -> None:
    for settings in ({"mode": 5}, {"durability": []}, {"max_bytes": 1.5}, {"timeout": "x"}, {"force": None}):
        with pytest.raises(SchemaError, match=next(iter(settings))):
            simindex.open(tmp_path / "a.simdb", **settings)
    for path in (5, "", "a\0b", ["x"]):
        with pytest.raises(SchemaError, match="path"):
            simindex.open(path)
    assert list(tmp_path.iterdir()) == []
