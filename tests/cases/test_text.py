"""Texts that become wrong fingerprints elsewhere (T1 to T9).

Not run here: the SimHash half of T9 and of T8, which come with that family.
"""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cases.sets import tok, words

import simindex
from simindex import features, sketch
from simindex.api import Database
from simindex.errors import SchemaError
from simindex.types import Features


def test_empty_and_blank_texts_match_nothing(db: Database) -> None:
    """T1: elsewhere a crash, or all empty texts are duplicates and all but one dropped."""
    bodies = {"e1": "", "e2": " \n\t", "e3": "!!!", "d1": "blue canal boat"}
    items = db.create_collection("t1", {"body": simindex.text(threshold=0.8)})
    report = items.put_many([{"key": k, "body": b} for k, b in bodies.items()], on_duplicate="skip")
    assert (report.inserted, report.empty, report.skipped, report.duplicates) == (4, 3, 0, [])
    for key in ("e1", "e2", "e3"):
        for how in ({}, {"k": 4}, {"plan": "scan"}, {"plan": "buckets"}, {"threshold": 0.0, "exact": True}):
            assert items.search(body=bodies[key], **how) == []
    assert [hit.key for hit in items.search(body=bodies["d1"], k=4)] == ["d1"]
    assert db.stats().empty == 3
    assert items.delete("e1")
    assert db.check() == []
    assert db.stats().empty == 2
    assert len(items) == 3


def test_dedup_keeps_all_empty_texts(
    command: Callable[..., subprocess.CompletedProcess[str]], lines: Callable[..., Path], tmp_path: Path
) -> None:
    """T1, through the command: nothing that has no content is dropped."""
    source = lines("in.jsonl", [{"text": t} for t in ("", " \n\t", "!!!", "blue canal boat", "")])
    done = command("dedup", source, "-o", "out.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()
    assert json.loads(done.stdout)["empty"] == 4


def test_texts_shorter_than_the_shingle_differ(db: Database) -> None:
    """T2: elsewhere "cat", "dog" and "cat" are one document."""
    items = db.create_collection("t2", {"body": simindex.text(shingle="words:5", threshold=0.9)})
    bodies = {"a": "cat", "b": "dog", "c": "cat", "d": "one two three four"}
    report = items.put_many([{"key": k, "body": b} for k, b in bodies.items()])
    assert report.shortened == 4
    for plan in ("scan", "buckets"):
        assert [(h.key, h.score) for h in items.search(body="cat", plan=plan)] == [("a", 1.0), ("c", 1.0)]
        assert [h.key for h in items.search(body="dog", plan=plan)] == ["b"]
        assert [h.key for h in items.search(body="one two three four", plan=plan)] == ["d"]


@pytest.mark.parametrize("n", [4, 5, 6])
def test_texts_of_about_one_shingle_differ(db: Database, n: int) -> None:
    """T2 at the edge of the shingle's size."""
    items = db.create_collection("t2", {"body": simindex.text(shingle="words:5", threshold=0.9)})
    report = items.put_many(
        [{"key": k, "body": words(first, first + n)} for k, first in (("a", 0), ("b", 100), ("c", 0))]
    )
    assert report.shortened == (3 if n < 5 else 0)
    assert [(h.key, h.score) for h in items.search(body=words(0, n))] == [("a", 1.0), ("c", 1.0)]
    assert [h.key for h in items.search(body=words(100, 100 + n))] == ["b"]
    assert items.search(body=words(0, n - 1)) == []


SCRIPTS = {
    "arabic": ("ابتثجحخدرزسشصضطعغفقكلمنهوي", 5, " "),
    "chinese": ("天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏", 2, ""),
    "thai": ("กขคฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ", 4, ""),
}


def sentences(script: str, seed: int) -> list[str]:
    """100 sentences of 30 of 200 invented stems, and a copy of the first with its last stem changed."""
    letters, length, between = SCRIPTS[script]
    rng = random.Random(seed)
    stems = sorted({"".join(rng.choices(letters, k=length)) for _ in range(400)})[:200]
    made = [[rng.choice(stems) for _ in range(30)] for _ in range(100)]
    made.append([*made[0][:-1], next(stem for stem in stems if stem != made[0][-1])])
    return [between.join(sentence) for sentence in made]


def test_sentences_of_any_script_are_told_apart(
    db: Database,
    command: Callable[..., subprocess.CompletedProcess[str]],
    lines: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """T3: elsewhere everything is removed, or unrelated texts share one fingerprint."""
    texts = [text for seed, script in enumerate(SCRIPTS) for text in sentences(script, seed)]
    field = simindex.text(threshold=0.8)
    items = db.create_collection("t3", {"body": field}, key="int")
    items.put_many({"key": np.arange(len(texts)), "body": texts})
    found = items.search_many(body=texts)
    pairs = {(i, j) for i, hits in enumerate(found) for j, _ in hits if i < j}
    assert pairs == {(0, 100), (101, 201), (202, 302)}
    signed = field.family.sign(features.text_features(texts, field.text))
    assert len({row.tobytes() for row in signed}) >= 300
    assert min(signed.std(axis=1)) > 50  # bytes that are spread, not ff..ff

    source = lines("in.jsonl", [{"text": text} for text in texts])
    done = command("dedup", source, "-o", "out.jsonl", "--quiet")
    assert done.returncode == 0, done.stderr
    kept = [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert kept == [text for i, text in enumerate(texts) if i not in (100, 201, 302)]


FORMS = [
    ("Cafe\u0301 Zu\u0308rich", "Caf\u00e9 Z\u00fcrich", {"nfc", "nfkc"}, False),
    ("ＡＢＣ１２３", "ABC123", {"nfkc"}, False),
    ("STRASSE", "straße", {"none", "nfc", "nfkc"}, True),
    ("soft\u00adhyphen here", "softhyphen here", {"nfc", "nfkc"}, False),
]


@pytest.mark.parametrize("normalize", ["none", "nfc", "nfkc"])
@pytest.mark.parametrize("casefold", [True, False])
@pytest.mark.parametrize(("a", "b", "equal", "needs_fold"), FORMS)
def test_normalisation_makes_equal_what_it_says(
    db: Database, normalize: str, casefold: bool, a: str, b: str, equal: set[str], needs_fold: bool
) -> None:
    """T4."""
    field = simindex.text(threshold=0.9, shingle="words:1", normalize=normalize, casefold=casefold)
    items = db.create_collection("t4", {"body": field})
    items.put("a", {"body": a})
    same = normalize in equal and (casefold or not needs_fold)
    assert [(h.key, h.score) for h in items.search(body=b)] == ([("a", 1.0)] if same else [])
    assert [h.key for h in items.search(body=a)] == ["a"]


def test_another_normalisation_than_the_stored_is_refused(path: Path) -> None:
    """T4: the setting and the Unicode version belong to the file."""
    with simindex.open(path) as db:
        made = db.create_collection("t4", {"body": simindex.text(normalize="nfc")})
        assert made.schema.fields["body"].to_dict()["text"]["unicode"] == features.UNICODE_VERSION
    before = path.read_bytes()
    with simindex.open(path) as db:
        for other in ({"normalize": "nfkc"}, {"normalize": "none"}, {"casefold": False}):
            with pytest.raises(SchemaError) as caught:
                db.create_collection("t4", {"body": simindex.text(**other)}, exist_ok=True)
            name, value = next(iter(other.items()))
            assert name in str(caught.value)
            assert str(value) in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("bad", ["abc \ud835 def", b"abc \xff\xfe def"])
def test_bad_characters_in_a_batch_are_stored(db: Database, bad: str | bytes) -> None:
    """T6: elsewhere UnicodeEncodeError ends the run."""
    items = db.create_collection("t6", {"body": simindex.text(threshold=0.8)}, key="int")
    rows = [{"key": i, "body": words(i * 10, i * 10 + 8)} for i in range(1000)]
    rows[500]["body"] = bad
    assert items.put_many(rows).inserted == 1000
    report = items.put_many([{"key": 5000, "body": bad}], on_duplicate="keep")
    assert [(d.key, d.other, d.score) for d in report.duplicates] == [(5000, 500, 1.0)]
    found = items.search_many(body=[row["body"] for row in rows])
    assert [hits[0] for hits in found] == [(i, 1.0) for i in range(1000)]
    assert [len(hits) for hits in found] == [2 if i == 500 else 1 for i in range(1000)]


def test_bad_characters_in_json_lines_are_stored(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """T6, through the command: an escaped lone surrogate, twice, among others."""
    good = [json.dumps({"text": words(i * 10, i * 10 + 8)}) for i in range(50)]
    bad = r'{"text": "abc \ud835 def"}'
    (tmp_path / "in.jsonl").write_text("\n".join([*good[:20], bad, *good[20:], bad]) + "\n")
    done = command("dedup", "in.jsonl", "-o", "out.jsonl", "--quiet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl").read_text().splitlines() == [*good[:20], bad, *good[20:]]


HUGE = """
import resource, sys
from simindex import features, sketch

def signature(parts):
    settings = features.TextSettings(shingle="words:1")
    text, signed = settings.stream(), sketch.family("fastsim/1", {"k": 256}).stream()
    for part in parts:
        signed.update(text.feed(part))
    hashes, _ = text.finish()
    signed.update(hashes)
    return signed.signature()

def tokens(numbers, step=20_000):
    for at in range(0, len(numbers), step):
        yield "".join(f"w{i:07} " for i in numbers[at : at + step]).encode()

class Numbers:
    def __init__(self, *ranges): self.ranges = ranges
    def __len__(self): return sum(map(len, self.ranges))
    def __getitem__(self, cut):
        a, b = self.ranges
        n = len(a)
        yield from a[cut]
        yield from b[max(cut.start - n, 0) : max(cut.stop - n, 0)]

n = int(sys.argv[1])
signature(tokens(range(1000)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
first = signature(tokens(range(n)))
second = signature(tokens(Numbers(range(n * 7 // 10), range(20_000_000, 20_000_000 + n * 3 // 10))))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, bytes(first).hex(), bytes(second).hex())
"""


@pytest.mark.parametrize("n", [100_000, pytest.param(10_000_000, marks=pytest.mark.long)])
def test_every_token_of_a_huge_document_counts(n: int, db: Database) -> None:
    """T7: elsewhere a sampled prefix gives 1.0, or memory explodes. Streamed: below 50 MB; 4 sd = 0.125."""
    done = subprocess.run([sys.executable, "-c", HUGE, str(n)], capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr
    kib, first, second = done.stdout.split()
    assert int(kib) < 50 * 1024
    field = simindex.text(threshold=0.5, shingle="words:1", k=256, slots=8, verify="estimate")
    a, b = (np.frombuffer(bytes.fromhex(x), np.uint8)[None] for x in (first, second))
    estimate = float(field.estimates[int((a == b).sum())])
    assert abs(estimate - 7 / 13) < 0.125

    items = db.create_collection("t7", {"body": field})
    items.put("first", {"body": words(0, n)})
    other = words(0, n * 7 // 10) + " " + words(20_000_000, 20_000_000 + n * 3 // 10)
    (hit,) = items.search(body=other, k=1)
    assert hit.score == estimate
    assert not hit.exact
    one = field.family.sign(features.text_features([other], field.text))
    assert one.tobytes() == b.tobytes()


TEXT79 = b"the quick brown fox, jumps over the lazy dog; then it sleeps until noon. 0123456"


@pytest.mark.parametrize("shingle", ["words:1", "words:3", "chars:5"])
def test_chunks_do_not_matter(shingle: str) -> None:
    """T8: elsewhere a short first chunk changes the hash."""
    text = TEXT79[:79]
    assert len(text) == 79
    settings = features.TextSettings(shingle=shingle)
    family = sketch.family("fastsim/1", {"k": 128})
    whole = family.sign(features.text_features([text], settings)).tobytes()
    cuts = [(4,), (5,), (), tuple(range(1, 79)), (1,), (78,), (40, 41)]
    for cut in cuts:
        stream, hashes = settings.stream(), []
        for a, b in zip((0, *cut), (*cut, 79), strict=True):
            hashes.append(stream.feed(text[a:b]))
        hashes.append(stream.finish()[0])
        every = np.concatenate(hashes)
        made = family.sign(one_item(every))
        assert made.tobytes() == whole, cut


def one_item(hashes: np.ndarray) -> Features:
    """One item of these hashes."""
    state = np.full(1, features.text_features(["a b c d"], features.TextSettings()).state[0])
    return Features(hashes, np.array([0, len(hashes)], np.int64), state)


def test_order_and_repetition_do_not_matter(db: Database) -> None:
    """T8."""
    rng = random.Random(8)
    for name in ("fastsim/1", "minhash/1"):
        family = sketch.family(name, {"k": 128})
        base = tok(0, 79)
        whole = family.sign(features.set_features([base])).tobytes()
        for _ in range(9):
            other = [t for t in base for _ in range(rng.randint(1, 9))]
            rng.shuffle(other)
            assert family.sign(features.set_features([other])).tobytes() == whole


def test_a_set_is_no_bag(db: Database) -> None:
    """T9: counts do not matter to Jaccard, and the answer names its measure."""
    items = db.create_collection("t9", {"body": simindex.text(shingle="words:1"), "tags": simindex.tokens()})
    items.put("a", {"body": "apple " * 40 + "banana " * 2, "tags": ["apple"] * 40 + ["banana"] * 2})
    for hits in (
        items.search(body="apple " * 2 + "banana " * 40),
        items.search(tags=["apple"] * 2 + ["banana"] * 40),
    ):
        assert [h.score for h in hits] == [1.0]
        assert hits.measure == "jaccard"
    assert "jaccard" in items.describe()
