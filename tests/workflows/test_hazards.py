"""What a run must never do: destroy what is not its own, lose its way near the end, or change values."""

import csv
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from simindex.workflows.dedup import Options, UsageError, dedup
from simindex.workflows.io import BadRecord
from simindex.workflows.io.rows import open_rows

LINES = [b'{"text":"one two three four"}\n', b"broken\n", b'{"text":"one two three four"}\n']


def run(folder: Path, source: Path | str, out: str | Path, **more: Any) -> Any:
    return dedup(Options(inputs=(str(source),), output=str(folder / out), sample=0, **more))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a folder with one line of text in each of the places that a hasty run could overwrite."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("hello world again")
    (tmp_path / "in.jsonl").write_bytes(LINES[0] + LINES[2])
    return tmp_path


@pytest.mark.parametrize("out", [".", "texts", "texts/inner", ""])
def test_an_output_folder_around_or_inside_an_input_is_refused(corpus: Path, out: str) -> None:
    before = snapshot(corpus)
    with pytest.raises(UsageError):
        run(corpus, corpus / "texts", corpus / out if out else "", force=True)
    assert snapshot(corpus) == before


@pytest.mark.parametrize("content", [b"precious\n", b"x" * 100_000, b"\0" * 5000 + b"x"])
@pytest.mark.parametrize("source", ["in.jsonl", "-"])
@pytest.mark.parametrize("force", [False, True])
def test_a_file_in_the_place_of_the_state_that_is_no_state_stays(
    corpus: Path, content: bytes, source: str, force: bool
) -> None:
    (corpus / "o.jsonl.partial").write_bytes(content)
    before = snapshot(corpus)
    with pytest.raises(UsageError, match=r"o\.jsonl\.partial is in the way"):
        run(corpus, "-" if source == "-" else corpus / source, "o.jsonl", force=force)
    assert snapshot(corpus) == before


def test_a_store_of_the_user_in_the_place_of_the_state_stays(corpus: Path) -> None:
    import simindex

    with simindex.open(corpus / "o.jsonl.partial") as db:
        db.create_collection("mine", {"text": simindex.text()}).put("a", {"text": "x"})
    with pytest.raises(UsageError):
        run(corpus, corpus / "in.jsonl", "o.jsonl")
    with simindex.open(corpus / "o.jsonl.partial", mode="r") as db:
        assert len(db["mine"]) == 1


@pytest.mark.parametrize("torn", [b"", b"\0" * 8192])
def test_a_state_torn_by_a_power_cut_is_made_anew(corpus: Path, torn: bytes) -> None:
    (corpus / "o.jsonl.partial").write_bytes(torn)
    assert run(corpus, corpus / "in.jsonl", "o.jsonl").kept == 1
    assert not list(corpus.glob("*.partial*"))


@pytest.mark.parametrize("end", ["", "-lock", ".stdin", ".out", ".clusters", ".rejects"])
@pytest.mark.parametrize("role", ["input", "clusters", "index", "rejects"])
def test_names_that_the_run_itself_uses_are_refused(corpus: Path, end: str, role: str) -> None:
    name = corpus / f"o.jsonl.partial{end}"
    more: dict[str, Any] = {"on_error": "skip", "format": "jsonl"}
    if role == "input":
        shutil.copy(corpus / "in.jsonl", name)
    else:
        more[role] = str(name)
    before = snapshot(corpus)
    with pytest.raises(UsageError, match=r"o\.jsonl\.partial"):
        run(corpus, name if role == "input" else corpus / "in.jsonl", "o.jsonl", **more)
    assert snapshot(corpus) == before


@pytest.mark.parametrize("role", ["output", "clusters", "index", "rejects"])
def test_pipes_and_folders_are_not_overwritten(corpus: Path, role: str) -> None:
    os.mkfifo(corpus / "pipe")
    names = {"output": "o.jsonl", role: "pipe"}
    for target in ("pipe", "texts"):
        if (role, target) == ("output", "texts"):
            continue  # only folders go to folders: another message
        names[role] = str(corpus / target)
        with pytest.raises(UsageError, match=r"is a pipe or device|is a folder"):
            dedup(
                Options(
                    inputs=(str(corpus / "in.jsonl"),), force=True, on_error="skip",
                    **names | {"output": str(corpus / names["output"])},
                )
            )  # fmt: skip
    assert (corpus / "pipe").is_fifo()
    assert snapshot(corpus / "texts") == {"a.txt": b"hello world again"}


@pytest.mark.parametrize("index", [None, "i.simdb"])
@pytest.mark.parametrize("stop", range(4))
def test_a_stop_before_any_rename_at_the_end_can_be_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int, index: str | None
) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"".join(LINES))
    names = {
        "clusters": str(tmp_path / "c.jsonl"),
        "rejects": str(tmp_path / "bad.jsonl"),
        "on_error": "skip",
    }
    more: dict[str, Any] = names | ({} if index is None else {"index": str(tmp_path / index)})
    outputs = ("o.jsonl", "c.jsonl", "bad.jsonl")

    renames = [0]
    whole = os.replace

    def replace(source: Any, target: Any) -> None:
        if Path(target).name in outputs:
            if renames[0] == stop:
                raise KeyboardInterrupt
            renames[0] += 1
        whole(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        if stop < 3:
            with pytest.raises(KeyboardInterrupt):
                run(tmp_path, tmp_path / "in.jsonl", "o.jsonl", **more)
        else:
            run(tmp_path, tmp_path / "in.jsonl", "o.jsonl", **more)
    if stop < 3:
        assert run(tmp_path, tmp_path / "in.jsonl", "o.jsonl", **more).kept == 1
    assert (tmp_path / "o.jsonl").read_bytes() == LINES[0]
    assert len((tmp_path / "c.jsonl").read_bytes().splitlines()) == 2
    assert json.loads((tmp_path / "bad.jsonl").read_bytes())["line"] == 2
    assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("value", ["a\rb", "\r", "a\r\nb", 'q"\n', ",", "\t", "", " x ", "\u2028", "\x00"])
def test_any_value_survives_the_way_through_csv(tmp_path: Path, suffix: str, value: str) -> None:
    record = {"text": f"one two three {value}", "other": value}
    (tmp_path / "in.jsonl").write_text(json.dumps(record) + "\n")
    run(tmp_path, tmp_path / "in.jsonl", f"a.{suffix}")
    with open(tmp_path / f"a.{suffix}", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="," if suffix == "csv" else "\t"))
    assert rows == [record]
    run(tmp_path, tmp_path / f"a.{suffix}", "b.jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_bytes()) == record


@pytest.mark.parametrize(
    ("line", "text"),
    [(rb'{"text":"a \ud800 b"}', "a \ufffd b"), (b'{"text":"a \xff b"}', "a \ufffd b")],
    ids=["surrogate", "bad byte"],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_no_text_is_replaced_in_other_formats(
    tmp_path: Path, line: bytes, text: str, suffix: str
) -> None:
    (tmp_path / "in.jsonl").write_bytes(line + b"\n")
    run(tmp_path, tmp_path / "in.jsonl", f"o.{suffix}")
    run(tmp_path, tmp_path / f"o.{suffix}", "back.jsonl")
    assert json.loads((tmp_path / "back.jsonl").read_bytes())["text"].replace("\ufffd" * 3, "\ufffd") == text


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_rows_of_standard_input_leave_no_copy_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    import io
    import tempfile

    content = b'{"key":"a"}\n' if format == "jsonl" else b"key\na\n"
    stdin = type("Stdin", (), {"buffer": io.BufferedReader(io.BytesIO(content))})  # type: ignore[arg-type]
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert list(open_rows(["-"], format, "key", False, False)) == [{"key": "a"}]
    assert list(tmp_path.iterdir()) == []


def test_closed_standard_input_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ValueError, match="standard input is closed"):
        run(tmp_path, "-", "o.jsonl")


def test_a_huge_cluster_costs_the_sampled_recall_no_more_pairs_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simindex.workflows.dedup.sampling.LINKS", 7)
    monkeypatch.setattr("simindex.workflows.dedup.sampling._WINDOW", 1)
    lines = [
        LINKS_OF_ONE % (f"one two three four {i}" if i % 3 == 0 else "five six seven eight")
        for i in range(300)
    ]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    found = dedup(
        Options(
            inputs=(str(tmp_path / "in.jsonl"),), output=str(tmp_path / "o.jsonl"), sample=300, threshold=0.9
        )
    ).sampled
    assert found is not None
    # 200 equal items; one of the 8 rows that a scan finds may be the item itself.
    assert 200 * 6 <= found.pairs <= 200 * 7
    assert found.recall == 1


LINKS_OF_ONE = '{"text":"%s"}\n'


@pytest.mark.parametrize("index", [None, "i.simdb"])
def test_a_command_that_failed_at_once_can_be_mended(tmp_path: Path, index: str | None) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"".join(LINES))
    more: dict[str, Any] = {} if index is None else {"index": str(tmp_path / index)}
    for wrong in ({"field": "nope", "on_error": "skip"}, {}):
        with pytest.raises((UsageError, BadRecord)):
            run(tmp_path, tmp_path / "in.jsonl", "o.jsonl", **wrong, **more)
    assert run(tmp_path, tmp_path / "in.jsonl", "o.jsonl", on_error="skip", **more).kept == 1
