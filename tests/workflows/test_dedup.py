"""dedup against brute force: first items of components survive, whatever the format, threads or kills."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simindex.errors import SchemaError
from simindex.workflows.dedup import Options, UsageError, dedup
from simindex.workflows.io import BadRecord
from simindex.workflows.io.jsonl import JsonLines
from workflows.corpus import components, jaccard, texts, write_lines


def run(tmp_path: Path, source: Path | str, out: str = "out.jsonl", **more: Any) -> Any:
    settings: dict[str, Any] = {"threads": 1, "sample": 0, "force": True} | more
    return dedup(Options(inputs=(str(source),), output=str(tmp_path / out), **settings))


def leftovers(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if ".partial" in name)


@pytest.mark.parametrize("verify", ["exact", "estimate"])
@pytest.mark.parametrize("seed", range(3))
def test_survivors_are_the_first_items_of_exact_components(tmp_path: Path, seed: int, verify: str) -> None:
    items = texts(600, seed)
    lines = write_lines(tmp_path / "in.jsonl", items)
    first = components(items)
    summary = run(
        tmp_path, tmp_path / "in.jsonl", verify=verify, key="id", clusters=str(tmp_path / "c.jsonl")
    )
    want = [line for i, line in enumerate(lines) if first[i] == i]
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(want)
    sizes = {root: first.count(root) for root in set(first)}
    assert (summary.items, summary.kept, summary.duplicates) == (600, len(want), 600 - len(want))
    assert summary.clusters == sum(size > 1 for size in sizes.values())
    assert summary.largest_cluster == max(sizes.values())
    members = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    wanted = [(f"d{i}", f"d{root}", i == root) for i, root in enumerate(first) if sizes[root] > 1]
    assert [(m["item"], m["cluster"], m["kept"]) for m in members] == wanted
    for member in members:
        assert list(member) == ["item", "cluster", "kept", "score"]
        if member["kept"]:
            assert member["score"] is None
        else:
            true = jaccard(items[int(member["item"][1:])], items[int(member["cluster"][1:])])
            assert member["score"] == pytest.approx(true, abs=1e-12 if verify == "exact" else 0.2)
    assert leftovers(tmp_path) == []


def test_threads_and_batches_do_not_change_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(tmp_path / "in.jsonl", texts(800, 7))
    found = set()
    for threads, size in [(1, 4 << 20), (1, 5000), (2, 5000), (3, 700)]:
        monkeypatch.setattr("simindex.workflows.io.jsonl.BATCH_BYTES", size)
        monkeypatch.setattr(JsonLines.__init__, "__defaults__", (size,))
        run(tmp_path, tmp_path / "in.jsonl", threads=threads, clusters=str(tmp_path / "c.jsonl"))
        found.add(((tmp_path / "out.jsonl").read_bytes(), (tmp_path / "c.jsonl").read_bytes()))
    assert len(found) == 1


def test_items_without_key_are_numbered_from_one_and_repeated_keys_lose_nothing(tmp_path: Path) -> None:
    text = "one two three four five six seven"
    rows = [
        {"id": "same", "text": text},
        {"id": "same", "text": "a b c d e"},
        {"id": "same", "text": text},
        {"text": text},
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run(tmp_path, tmp_path / "in.jsonl", clusters=str(tmp_path / "c.jsonl"))
    found = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [(m["item"], m["cluster"], m["score"]) for m in found] == [(1, 1, None), (3, 1, 1.0), (4, 1, 1.0)]
    run(tmp_path, tmp_path / "in.jsonl", key="id", clusters=str(tmp_path / "c.jsonl"))
    found = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [m["item"] for m in found] == ["same", "same", 4]
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


def test_a_chain_is_one_cluster_in_every_order_and_its_lowest_score_is_told(tmp_path: Path) -> None:
    # 102, 112 and 122 words give 100 shingles each, offset by 10: J(A,B) = J(B,C) = 0.818, J(A,C) = 0.667.
    words = [f"w{i:07d}" for i in range(122)]
    a, b, c = (" ".join(words[i : i + 102]) for i in (0, 10, 20))
    assert jaccard(a, b) == pytest.approx(0.818, abs=1e-3)
    assert jaccard(a, c) == pytest.approx(0.667, abs=1e-3)
    for order in ([a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]):
        write_lines(tmp_path / "in.jsonl", order)
        summary = run(tmp_path, tmp_path / "in.jsonl", recall=0.9999, clusters=str(tmp_path / "c.jsonl"))
        assert (summary.kept, summary.largest_cluster) == (1, 3)
        lowest = min(jaccard(order[0], text) for text in order)
        assert summary.lowest_score == pytest.approx(lowest, abs=1e-12)


def test_empty_blank_absent_and_short_texts_are_states(tmp_path: Path) -> None:
    rows = [
        {"text": ""}, {"text": " \n\t"}, {"text": "!!!"}, {"text": None}, {"other": 1},
        {"text": "cat"}, {"text": "dog"}, {"text": "Cat"}, {"text": ""},
        {"text": "one two three four"}, {"text": "abc \ud835 def ghi"},
        {"text": "abc \ud835 def ghi"},
    ]  # fmt: skip
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    summary = run(tmp_path, tmp_path / "in.jsonl", clusters=str(tmp_path / "c.jsonl"))
    assert (summary.items, summary.kept, summary.absent, summary.empty, summary.shortened) == (
        12,
        10,
        2,
        4,
        3,
    )
    members = [json.loads(line)["item"] for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert members == [6, 8, 11, 12]


@pytest.mark.parametrize("count", [0, 1])
def test_no_items_and_one_item_are_fine(tmp_path: Path, count: int) -> None:
    lines = write_lines(tmp_path / "in.jsonl", texts(count, 1))
    summary = run(tmp_path, tmp_path / "in.jsonl", clusters=str(tmp_path / "c.jsonl"), sample=10)
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(lines)
    assert (tmp_path / "c.jsonl").read_bytes() == b""
    assert (summary.items, summary.kept, summary.clusters, summary.largest_cluster) == (
        count,
        count,
        0,
        count,
    )


def test_several_files_are_one_corpus(tmp_path: Path) -> None:
    items = texts(300, 5)
    lines = write_lines(tmp_path / "a.jsonl", items[:100])
    lines += write_lines(tmp_path / "b.jsonl", items[100:])
    (tmp_path / "empty.jsonl").write_bytes(b"")
    names = ("a.jsonl", "empty.jsonl", "b.jsonl")
    dedup(
        Options(inputs=tuple(str(tmp_path / n) for n in names), output=str(tmp_path / "out.jsonl"), sample=0)
    )
    first = components(items)
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(x for i, x in enumerate(lines) if first[i] == i)


def test_every_format_gives_the_same_survivors(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.csv
    import pyarrow.parquet as pq

    items = texts(200, 3)
    first = components(items)
    kept = [i for i in range(200) if first[i] == i]
    table = pa.table({"n": list(range(200)), "text": items})
    pq.write_table(table, tmp_path / "in.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "in.csv")
    (tmp_path / "folder").mkdir()
    for i, text in enumerate(items):
        (tmp_path / "folder" / f"{i:03d}.txt").write_text(text)
    run(tmp_path, tmp_path / "in.parquet", "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").column("n").to_pylist() == kept
    run(tmp_path, tmp_path / "in.csv", "out.csv")
    assert pyarrow.csv.read_csv(tmp_path / "out.csv").column("n").to_pylist() == kept
    run(tmp_path, tmp_path / "folder", "out", key="path", clusters=str(tmp_path / "c.jsonl"))
    assert sorted(int(p.stem) for p in (tmp_path / "out").iterdir()) == kept
    assert json.loads((tmp_path / "c.jsonl").read_text().splitlines()[0])["item"].endswith(".txt")
    run(tmp_path, tmp_path / "in.parquet", "out.jsonl.gz")
    run(tmp_path, tmp_path / "out.jsonl.gz", "again.csv")
    assert pyarrow.csv.read_csv(tmp_path / "again.csv").column("n").to_pylist() == kept
    assert leftovers(tmp_path) == []


def test_a_bad_record_is_named_and_fatal_or_skipped(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "in.jsonl", texts(50, 1, related=0))
    bad = b'{"text": "no end}\n'
    (tmp_path / "in.jsonl").write_bytes(b"".join([*lines[:20], bad, *lines[20:], b"[]\n"]))
    with pytest.raises(BadRecord, match=r"in\.jsonl, line 21: not JSON"):
        run(tmp_path, tmp_path / "in.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    rejects = tmp_path / "bad.jsonl"
    summary = run(tmp_path, tmp_path / "in.jsonl", on_error="skip", rejects=str(rejects), out="o2.jsonl")
    assert (tmp_path / "o2.jsonl").read_bytes() == b"".join(lines)
    assert (summary.items, summary.rejected) == (50, 2)
    found = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [(r["line"], r["raw"].encode() + b"\n") for r in found] == [(21, bad), (52, b"[]\n")]
    assert found[0]["file"].endswith("in.jsonl")


def test_a_field_that_no_record_has_is_an_error_that_names_those_there(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"body": "a b c", "id": 1}\n' * 3)
    with pytest.raises(UsageError, match=r"none of the first 3 records has a field 'text'.*body, id"):
        run(tmp_path, tmp_path / "in.jsonl")
    assert run(tmp_path, tmp_path / "in.jsonl", field="body", out="other.jsonl").kept == 1


def test_what_exists_is_not_overwritten_without_force(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "in.jsonl", texts(20, 1))
    for name in ("out.jsonl", "c.jsonl"):
        (tmp_path / name).write_text("precious")
        with pytest.raises(UsageError, match=f"{name}.* exists already: --force"):
            run(tmp_path, tmp_path / "in.jsonl", force=False, clusters=str(tmp_path / "c.jsonl"))
        assert (tmp_path / name).read_text() == "precious"
        (tmp_path / name).unlink()
    for options in (
        {"out": "in.jsonl"},
        {"clusters": str(tmp_path / "in.jsonl")},
        {"clusters": str(tmp_path / "out.jsonl")},
    ):
        with pytest.raises(UsageError, match="is also"):
            run(tmp_path, tmp_path / "in.jsonl", **options)
    assert (tmp_path / "in.jsonl").read_bytes() == b"".join(lines)
    with pytest.raises(UsageError, match="no folder"):
        run(tmp_path, tmp_path / "in.jsonl", "missing/out.jsonl")
    with pytest.raises(UsageError, match="inside an input folder"):
        run(tmp_path, tmp_path, "out.jsonl")
    with pytest.raises(UsageError, match="--rejects needs"):
        run(tmp_path, tmp_path / "in.jsonl", rejects=str(tmp_path / "r"))
    with pytest.raises(SchemaError, match="threshold"):
        run(tmp_path, tmp_path / "in.jsonl", threshold=1.5)
    with pytest.raises(SchemaError, match="bands"):
        run(tmp_path, tmp_path / "in.jsonl", bands=(16, 9))
    assert leftovers(tmp_path) == []


def test_a_kill_at_any_moment_leaves_what_the_same_command_goes_on_from(tmp_path: Path, rounds: int) -> None:
    lines = write_lines(tmp_path / "in.jsonl", texts(3000, 11))
    lines.insert(1500, b"broken\n")
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    script = Path(__file__).with_name("kill_rounds.py")
    done = subprocess.run([sys.executable, script, tmp_path, str(rounds)], check=True, capture_output=True)
    found = json.loads(done.stdout)
    assert found["wrong"] == 0
    assert leftovers(tmp_path) == []
    assert found["states"] >= rounds // 2, f"the kills came too early or too late to test anything: {found}"


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return 200 if request.config.getoption("--long") else 20


def stop_in_the_middle(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Make the next runs die after some batches, as Ctrl-C would."""
    taken = [0]

    def decode(self: Any, batch: Any) -> Any:
        taken[0] += 1
        if taken[0] > after:
            raise KeyboardInterrupt
        return whole(self, batch)

    whole = JsonLines.decode
    monkeypatch.setattr(JsonLines, "decode", decode)


def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[bytes]:
    """Leave a state of a run over in.jsonl that was stopped half-way."""
    lines = write_lines(tmp_path / "in.jsonl", texts(500, 2))
    with monkeypatch.context() as patch:
        patch.setattr(JsonLines.__init__, "__defaults__", (5000,))
        patch.setattr("simindex.workflows.dedup.ingest.COMMIT_BYTES", 10_000)
        stop_in_the_middle(patch, 10)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, tmp_path / "in.jsonl", **more)
    return lines


def test_a_stopped_run_goes_on_after_what_was_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(tmp_path, monkeypatch)
    (tmp_path / "out.jsonl").write_text("made meanwhile")
    with pytest.raises(UsageError, match="exists already"):
        run(tmp_path, tmp_path / "in.jsonl", force=False)
    (tmp_path / "out.jsonl").unlink()
    summary = run(tmp_path, tmp_path / "in.jsonl", force=False)
    assert 0 < summary.resumed_at < 500
    resumed = (tmp_path / "out.jsonl").read_bytes()
    run(tmp_path, tmp_path / "in.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == resumed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": 0.9}, "threshold was 0.8 and is 0.9 now"),
        ({"shingle": "words:2"}, "shingle was 'words:3' and is 'words:2'"),
        ({"field": "id"}, "field was 'text' and is 'id'"),
        ({"on_error": "skip"}, "on_error was 'fail'"),
    ],
)
def test_other_settings_do_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    interrupted(tmp_path, monkeypatch)
    with pytest.raises(UsageError, match=message):
        run(tmp_path, tmp_path / "in.jsonl", **change)
    assert not (tmp_path / "out.jsonl").exists()


def test_other_input_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = interrupted(tmp_path, monkeypatch)
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines) + lines[0])
    with pytest.raises(UsageError, match=r"in\.jsonl: .* was .* and is .* now"):
        run(tmp_path, tmp_path / "in.jsonl")


def test_an_index_is_kept_with_labels_sources_and_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import simindex

    index = str(tmp_path / "items.simdb")
    interrupted(tmp_path, monkeypatch, index=index, key="id")
    assert not os.path.exists(tmp_path / "out.jsonl.partial")
    items = texts(500, 2)
    first = components(items)
    summary = run(tmp_path, tmp_path / "in.jsonl", index=index, key="id", force=False)
    assert summary.resumed_at
    with simindex.open(index, mode="r") as db:
        assert db.collections() == ["items"]
        stored = db["items"]
        assert len(stored) == 500
        assert db.check() == []
        for i in (0, 1, 250, 499):
            attributes = stored[i + 1]
            assert attributes["label"] == f"d{i}"
            assert attributes["source"].endswith("in.jsonl")
            in_cluster = first.count(first[i]) > 1
            assert attributes.get("cluster") == (first[i] + 1 if in_cluster else None)
        hits = stored.search(text=items[7])
        assert 8 in [hit.key for hit in hits]
    with pytest.raises(UsageError, match="complete already"):
        run(tmp_path, tmp_path / "in.jsonl", "new.jsonl", index=index, key="id", force=False)
    run(tmp_path, tmp_path / "in.jsonl", "new.jsonl", index=index, key="id")
    assert (tmp_path / "new.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()


def test_a_foreign_index_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    import simindex

    write_lines(tmp_path / "in.jsonl", texts(20, 2))
    with simindex.open(tmp_path / "mine.simdb") as db:
        db.create_collection("c", {"body": simindex.text()})
    (tmp_path / "text.simdb").write_text("not a store at all")
    for name in ("mine.simdb", "text.simdb"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(UsageError, match="was not made by dedup"):
            run(tmp_path, tmp_path / "in.jsonl", index=str(tmp_path / name))
        assert (tmp_path / name).read_bytes() == before


def test_sampled_recall_counts_true_links(tmp_path: Path) -> None:
    items = texts(400, 9)
    write_lines(tmp_path / "in.jsonl", items)
    found = run(tmp_path, tmp_path / "in.jsonl", sample=400).sampled
    pairs = 2 * sum(jaccard(a, b) >= 0.8 for i, a in enumerate(items) for b in items[:i])
    assert (found.items, found.pairs) == (400, pairs)
    assert found.recall == found.found / pairs
    assert found.low <= found.recall <= found.high
    assert found.recall > 0.98
    few = run(tmp_path, tmp_path / "in.jsonl", sample=400, bands=(1, 32), force_bands=True).sampled
    assert few.recall < 0.95


def test_memory_of_its_own_grows_by_few_bytes_an_item(tmp_path: Path) -> None:
    """Of its own: without pages of files. 500,000 items take 16 bytes each, and slack, over 250,000."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells a process's own memory apart")
    code = (
        "import re, sys\nfrom simindex.workflows.dedup import Options, dedup\npeak = 0\n"
        "def look(stage, done, total):\n"
        "    global peak\n"
        "    text = open('/proc/self/status').read()\n"
        "    peak = max(peak, int(re.search(r'RssAnon:\\s+(\\d+)', text)[1]))\n"
        "dedup(Options(inputs=(sys.argv[1],), output=sys.argv[2], threads=1, sample=0, force=True), look)\n"
        "print(peak)"
    )
    peaks = []
    for count in (250_000, 500_000):
        with (tmp_path / "in.jsonl").open("w") as file:
            for i in range(count):
                file.write(f'{{"text": "item {i} of words {i * 7919 % 1000} and more {i % 13}"}}\n')
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            code,
            str(tmp_path / "in.jsonl"),
            str(tmp_path / "out.jsonl"),
        ]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True).stdout) * 1024)
    assert peaks[1] - peaks[0] < 16 * 250_000 + 40e6, peaks


def test_a_scratch_state_from_before_a_restart_of_the_machine_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written without syncs: after a power failure its pages may be of any age."""
    interrupted(tmp_path, monkeypatch)
    monkeypatch.setattr("simindex.workflows.dedup.state.boot_id", lambda: "another start")
    summary = run(tmp_path, tmp_path / "in.jsonl")
    assert (summary.items, summary.resumed_at) == (500, 0)


def test_a_synced_state_survives_a_restart_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tmp_path, monkeypatch, durability="full")
    monkeypatch.setattr("simindex.workflows.dedup.state.boot_id", lambda: "another start")
    assert run(tmp_path, tmp_path / "in.jsonl", durability="full").resumed_at > 0


def test_two_runs_of_one_command_at_once_do_not_mix(tmp_path: Path) -> None:
    from simindex.errors import Locked
    from simindex.workflows.dedup.ingest import compute
    from simindex.workflows.dedup.state import State
    from simindex.workflows.io import Block, Place, identity, open_source

    write_lines(tmp_path / "in.jsonl", texts(50, 1))
    options = Options(inputs=(str(tmp_path / "in.jsonl"),), output=str(tmp_path / "out.jsonl"))
    source, schema = open_source(options.inputs), options.schema()
    batch = next(source.batches(Place()))
    work = compute(source, schema, False, None, batch)
    block = Block(0, 0, batch.stop, 50, 50, None)
    path = str(tmp_path / "out.jsonl.partial")
    states = [State.open(path, schema, options.settings(), identity(source), None) for _ in range(2)]
    states[0].append(block, work.field, None, Place(0, batch.stop, 50))
    states[0].commit()
    with pytest.raises(Locked, match="another process is writing the same output"):
        states[1].append(block, work.field, None, Place(0, batch.stop, 50))
    for state in states:
        state.close()


def test_an_input_that_cannot_be_read_to_its_end_leaves_a_state_to_go_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A truncated file is an error however often the command is given; nothing appears at the output."""
    import gzip

    from simindex.workflows.io import TruncatedInput

    whole = gzip.compress(b"".join(write_lines(tmp_path / "plain.jsonl", texts(2000, 4, related=0))))
    (tmp_path / "in.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    for _ in range(2):
        with pytest.raises(TruncatedInput, match=r"in\.jsonl\.gz.*cut short"):
            run(tmp_path, tmp_path / "in.jsonl.gz")
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("name", ["licenses", "sotu", "gesetze", "poems"])
def test_the_sample_corpus_deduplicates_like_a_brute_force_comparison(name: str) -> None:
    """On real texts of several scripts: survivors are those of comparing all pairs of shingle sets."""
    import numpy as np
    import zstandard

    from simindex.features import TextSettings, text_features
    from simindex.samples import CORPUS

    with zstandard.open(CORPUS, "rb") as file:
        rows = [row for row in map(json.loads, file.read().splitlines()) if row["set"] == name]
    found = text_features([row["text"] for row in rows], TextSettings())
    sets = [set(found.hashes[a:b].tolist()) for a, b in zip(found.ptr, found.ptr[1:], strict=False)]
    holders: dict[int, list[int]] = {}
    pairs: dict[tuple[int, int], int] = {}
    for i, shingles in enumerate(sets):
        for shingle in shingles:
            for j in holders.setdefault(shingle, []):
                pairs[j, i] = pairs.get((j, i), 0) + 1
            holders[shingle].append(i)
    first = np.arange(len(sets))
    for (j, i), inter in sorted(pairs.items()):
        if inter >= 0.8 * (len(sets[i]) + len(sets[j]) - inter):
            a, b = first[j], first[i]
            first[first == max(a, b)] = min(a, b)
    kept = {rows[i]["id"] for i in range(len(rows)) if first[i] == i}
    assert survivors_of_sample(name) == kept


def survivors_of_sample(name: str) -> set[str]:
    import tempfile

    from simindex.samples import CORPUS

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        dedup(Options(inputs=(str(CORPUS),), output=str(out), sample=0, recall=0.9999))
        with out.open(encoding="utf-8") as lines:
            return {row["id"] for row in map(json.loads, lines) if row["set"] == name}
