"""Readers and writers: what goes in comes out, whatever the format's corners."""

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import FeatureError
from simindex.workflows.io import (
    BadRecord,
    Block,
    Place,
    Source,
    TruncatedInput,
    UnknownColumn,
    format_of,
    label_list,
    line_mask,
    open_source,
    open_survivors,
)
from simindex.workflows.io.jsonl import JsonLines, line_ranges


def read(
    source: Source, place: Place | None = None
) -> tuple[list[bytes | None], list[Any], list[Block], list[Any]]:
    """Return (texts, labels, blocks, rejects) of a whole corpus."""
    texts: list[bytes | None] = []
    labels: list[Any] = []
    blocks, rejects = [], []
    for batch in source.batches(place or Place()):
        found = source.decode(batch)
        raw = found.texts.data.tobytes()
        ends = found.texts.offsets.tolist()
        texts += [
            raw[a:b] if p else None for a, b, p in zip(ends, ends[1:], found.present.tolist(), strict=False)
        ]
        labels += [] if found.labels is None else label_list(found.labels)
        rejects += found.rejects
        blocks.append(
            Block(
                batch.file,
                batch.offset,
                batch.stop,
                found.lines,
                len(found),
                found.accepted,
            )
        )
    return texts, labels, blocks, rejects


def copy(source: Source, blocks: list[Block], keep: list[bool], out: Path) -> None:
    """Write the kept records."""

    def passes() -> Any:
        at = 0
        for block, payload in source.again(blocks):
            yield (
                payload,
                line_mask(block.lines, block.accepted, np.array(keep[at : at + block.records], np.bool_)),
            )
            at += block.records

    writer = open_survivors(source, str(out), str(out) + ".tmp", passes())
    for payload, mask in passes():
        writer.write(payload, mask)
    writer.seal()
    assert not out.is_file()
    writer.finish()


LINES = [
    b'{"text": "one", "id": "a", "n": 1.50}\n',
    b'{"id": 2, "text": "two \\ud835 \\u00e9"}\r\n',
    b"\n",
    b'  {"text":"three"}  \n',
    b" \t\r\n",
    b'{"id": null, "text": null}\n',
    b'{"id": [1], "text": "\xff raw"}\n',
    b'{"other": 1}',
]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("batch_bytes", [1, 7, 64, 1 << 20])
def test_json_lines_are_read_and_copied_byte_for_byte(tmp_path: Path, ending: str, batch_bytes: int) -> None:
    path = tmp_path / f"in.jsonl{ending}"
    half = len(LINES) // 2
    members = [b"\xef\xbb\xbf" + b"".join(LINES[:half]), b"".join(LINES[half:])]
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[ending]
    path.write_bytes(b"".join(map(pack, members)))
    source = open_source([str(path)], key="id")
    assert isinstance(source, JsonLines)
    source.batch_bytes = batch_bytes
    texts, labels, blocks, rejects = read(source)
    assert texts == [b"one", b"two \xed\xa0\xb5 \xc3\xa9", b"three", None, b"\xff raw", None]
    assert labels == ["a", 2, None, None, "[1]", None]
    assert not rejects
    assert sum(block.lines for block in blocks) == len(LINES)
    copy(source, blocks, [True, True, False, True, True, True], tmp_path / "out.jsonl")
    want = [b"\xef\xbb\xbf" + LINES[0], LINES[1], LINES[5], LINES[6], LINES[7] + b"\n"]
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(want)


@given(
    st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=30),
    st.integers(1, 40),
    st.booleans(),
)
def test_batches_end_at_lines_and_add_up(
    tmp_path_factory: Any, lines: list[bytes], size: int, newline: bool
) -> None:
    path = tmp_path_factory.mktemp("io") / "in.jsonl"
    data = b"\n".join(lines) + (b"\n" if newline else b"")
    path.write_bytes(data)
    source = open_source([str(path)])
    assert isinstance(source, JsonLines)
    source.batch_bytes = size
    batches = list(source.batches(Place()))
    assert b"".join(batch.payload for batch in batches) == data
    assert all(batch.payload.endswith(b"\n") for batch in batches[:-1])
    for start in batches:
        rest = list(source.batches(Place(0, start.offset)))
        assert b"".join(batch.payload for batch in rest) == data[start.offset :]
    for batch in batches:
        starts, stops = line_ranges(batch.payload)
        assert [batch.payload[a:b] for a, b in zip(starts, stops, strict=True)] == batch.payload.splitlines(
            True
        ) or (b"\r" in batch.payload or b"\x0b" in batch.payload or b"\x0c" in batch.payload)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{broken", "not JSON"),
        (b"[1, 2]", "a JSON object is needed, not an array"),
        (b'"text"', "not a string"),
        (b'{"text": 5}', "field 'text' must be a string, not a number"),
        (b'{"text": ["a"]}', "not an array"),
        (b'{"text": "a"} {"text": "b"}', "not JSON"),
        (b'{"text": "\x01 control"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_bad_lines_are_named_and_the_rest_is_read(tmp_path: Path, line: bytes, why: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text": "good"}\n' + line + b'\n{"text": "fine"}\n')
    texts, _, blocks, rejects = read(open_source([str(path)]))
    assert texts == [b"good", b"fine"]
    assert [reject.line for reject in rejects] == [1]
    assert why in rejects[0].error
    assert rejects[0].raw == line
    assert blocks[0].records == 2


def test_a_line_of_100_million_bytes_is_one_record(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    with path.open("wb") as file:
        file.write(b'{"text": "short"}\n{"text": "')
        for _ in range(100):
            file.write(b"0123456789" * 100_000)
        file.write(b'"}\n{"text": "end"}\n')
    texts, _, blocks, _ = read(open_source([str(path)]))
    assert [len(text or b"") for text in texts] == [5, 100_000_000, 3]
    copy(open_source([str(path)]), blocks, [False, True, True], tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").stat().st_size == path.stat().st_size - 18


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("cut", [3, 30, 1])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path: Path, ending: str, cut: int) -> None:
    data = b"".join(json.dumps({"text": os.urandom(30).hex()}).encode() + b"\n" for _ in range(1000))
    packed = gzip.compress(data) if ending == ".gz" else zstandard.ZstdCompressor().compress(data)
    path = tmp_path / f"cut.jsonl{ending}"
    path.write_bytes(packed[: -len(packed) // cut] if cut < 30 else packed[:-cut])
    if not path.stat().st_size:
        path.write_bytes(packed[:20])
    with pytest.raises(TruncatedInput, match=r"cut\.jsonl.*(cut short|broken)"):
        read(open_source([str(path)]))


def test_something_else_under_a_compressed_name_is_an_error(tmp_path: Path) -> None:
    for ending in (".gz", ".zst"):
        path = tmp_path / f"fake.jsonl{ending}"
        path.write_bytes(b'{"text": "not compressed"}\n')
        with pytest.raises(TruncatedInput, match="broken"):
            read(open_source([str(path)]))


CSV = (
    b'\xef\xbb\xbfid,text,note\r\n1,"a, quoted ""text""\nof two lines",x\r\n\r\n'
    b"2,plain \xff,\r\n3,too,many,values\r\n4,,\r\n5,last,z"
)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_csv_records_keep_their_bytes(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"in.csv{ending}"
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[ending]
    path.write_bytes(pack(CSV))
    source = open_source([str(path)], key="id")
    texts, labels, blocks, rejects = read(source)
    assert texts == [b'a, quoted "text"\nof two lines', b"plain \xff", b"", b"last"]
    assert labels == ["1", "2", "4", "5"]
    assert [(r.line, r.error, r.raw) for r in rejects] == [
        (4, "4 values, but the header has 3 columns", b"3,too,many,values\r\n")
    ]
    copy(source, blocks, [True, False, True, True], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == (
        b'\xef\xbb\xbfid,text,note\r\n1,"a, quoted ""text""\nof two lines",x\r\n4,,\r\n5,last,z\n'
    )
    # A reader that starts in the middle goes on with the next record.
    assert read(source, Place(0, 2, 4))[0] == [b"", b"last"]


def test_csv_columns_and_headers_must_fit(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,x\n")
    (tmp_path / "b.csv").write_text("id,text\n1,x\n")
    (tmp_path / "c.csv").write_text("text,id\nx,1\n")
    (tmp_path / "d.tsv").write_text("id\ttext\n1\ta, b\n")
    (tmp_path / "e.csv").write_text('id,text\n1,"never closed\n2,x\n')
    with pytest.raises(UnknownColumn, match=r"a\.csv: no column 'text'; the header has: id, body"):
        read(open_source([str(tmp_path / "a.csv")]))
    with pytest.raises(
        BadRecord, match=r"c\.csv: its header \(text, id\) is not that of .*b\.csv \(id, text\)"
    ):
        read(open_source([str(tmp_path / "b.csv"), str(tmp_path / "c.csv")]))
    assert read(open_source([str(tmp_path / "d.tsv")]))[0] == [b"a, b"]
    texts, _, _, rejects = read(open_source([str(tmp_path / "e.csv")]))
    assert texts == []
    assert "not CSV" in rejects[0].error


def test_an_empty_file_of_any_text_format_has_no_records(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.csv"):
        (tmp_path / name).write_bytes(b"")
        assert read(open_source([str(tmp_path / name)]))[2] == []


def make_parquet(path: Path, kind: Any = None) -> Any:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    texts = ["eins", None, "drei \ud835".encode("utf-8", "replace").decode(), ""] * 5000
    table = pa.table(
        {
            "id": pa.array([f"r{i}" if i % 7 else None for i in range(len(texts))]),
            "text": pa.array(texts, kind or pa.string()),
            "nested": pa.array([{"a": [i, i + 1]} for i in range(len(texts))]),
        }
    ).replace_schema_metadata({"origin": "made up"})
    pq.write_table(table, path, row_group_size=3000)
    return table


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "dictionary"])
def test_parquet_keeps_columns_schema_and_nulls(tmp_path: Path, kind: str) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    types = {
        "string": pa.string(),
        "large_string": pa.large_string(),
        "binary": pa.binary(),
        "dictionary": pa.dictionary(pa.int32(), pa.string()),
    }
    table = make_parquet(tmp_path / "in.parquet", types[kind])
    source = open_source([str(tmp_path / "in.parquet"), str(tmp_path / "in.parquet")], key="id")
    texts, labels, blocks, _ = read(source)
    want = [t if t is None or isinstance(t, bytes) else t.encode() for t in table.column("text").to_pylist()]
    assert texts == want * 2
    assert labels == table.column("id").to_pylist() * 2
    keep = [i % 3 == 0 for i in range(len(texts))]
    copy(source, blocks, keep, tmp_path / "out.parquet")
    out = pq.read_table(tmp_path / "out.parquet")
    both = pa.concat_tables([table, table])
    assert out.equals(both.filter(pa.array(keep)))
    assert out.schema.metadata[b"origin"] == b"made up"
    assert read(source, Place(1, 19_990, 0))[0] == want[19_990:]


def test_parquet_problems_are_named(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    make_parquet(tmp_path / "in.parquet")
    with pytest.raises(UnknownColumn, match=r"no column 'body'; the file has: id, text, nested"):
        open_source([str(tmp_path / "in.parquet")], field="body")
    with pytest.raises(UnknownColumn, match=r"column 'nested' is struct.*not text"):
        open_source([str(tmp_path / "in.parquet")], field="nested")
    data = (tmp_path / "in.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(TruncatedInput, match=r"cut\.parquet"):
        open_source([str(tmp_path / "cut.parquet")])
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(BadRecord, match=r"other\.parquet: its schema"):
        open_source([str(tmp_path / "in.parquet"), str(tmp_path / "other.parquet")])


def test_a_folder_is_read_in_path_order_whatever_the_encodings(tmp_path: Path) -> None:
    root = tmp_path / "texts"
    files = {"b.txt": b"bee", "a/z.txt": b"\xff\xfe bad", "a/e.txt": b"", "c.md": "größer".encode()}
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / ".hidden").write_bytes(b"no")
    source = open_source([str(root)], key="path")
    texts, labels, blocks, _ = read(source)
    assert labels == ["a/e.txt", "a/z.txt", "b.txt", "c.md"]
    assert texts == [files[str(name)] for name in labels]
    copy(source, blocks, [True, True, False, True], tmp_path / "out")
    found = {
        str(p.relative_to(tmp_path / "out")): p.read_bytes()
        for p in (tmp_path / "out").rglob("*")
        if p.is_file()
    }
    assert found == {name: data for name, data in files.items() if name != "b.txt"}
    copy(source, blocks, [True] * 4, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert rows[1] == {"path": "a/z.txt", "text": "�� bad"}
    assert rows[3]["text"] == "größer"


def test_survivors_can_change_format(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, Any]] = [
        {"text": "a, b\nc", "n": 1},
        {"text": "dropped", "late": True},
        {"text": "ünï", "n": 2.5, "tags": ["x"]},
        {"text": "no n", "late": "s"},
    ]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = open_source([str(path)])
    _, _, blocks, _ = read(source)
    keep = [True, False, True, True]
    copy(source, blocks, keep, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        'text,n,tags,late\n"a, b\nc",1,,\nünï,2.5,"[""x""]",\nno n,,,s\n'
    )
    copy(source, blocks, keep, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [
        {"text": "a, b\nc", "n": 1.0, "tags": None, "late": None},
        {"text": "ünï", "n": 2.5, "tags": ["x"], "late": None},
        {"text": "no n", "n": None, "tags": None, "late": "s"},
    ]
    copy(source, blocks, keep, tmp_path / "out.jsonl.gz")
    with gzip.open(tmp_path / "out.jsonl.gz", "rb") as file:
        assert file.read() == b"".join(
            line for line, k in zip(path.read_bytes().splitlines(True), keep, strict=True) if k
        )
    copy(source, blocks, keep, tmp_path / "out.jsonl.zst")
    with zstandard.open(tmp_path / "out.jsonl.zst", "rb") as packed:
        assert packed.read().count(b"\n") == 3
    back = open_source([str(tmp_path / "out.parquet")])
    copy(back, read(back)[2], [True, False, True], tmp_path / "back.jsonl")
    assert [json.loads(line)["text"] for line in (tmp_path / "back.jsonl").read_text().splitlines()] == [
        "a, b\nc",
        "no n",
    ]
    from_csv = open_source([str(tmp_path / "out.csv")])
    copy(from_csv, read(from_csv)[2], [True, True, False], tmp_path / "csv.jsonl")
    assert json.loads((tmp_path / "csv.jsonl").read_text().splitlines()[1]) == {
        "text": "ünï", "n": "2.5", "tags": '["x"]', "late": "",
    }  # fmt: skip


def test_standard_input_is_spooled_for_the_second_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for data in (b"".join(LINES), gzip.compress(b"".join(LINES))):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]
        monkeypatch.setattr("sys.stdin", stdin)
        source = open_source(["-"], spool=str(tmp_path / "spool"))
        texts, _, blocks, _ = read(source)
        assert len(texts) == 6
        copy(source, blocks, [True] * 6, tmp_path / "out.jsonl")
        assert (tmp_path / "out.jsonl").read_bytes() == b"".join(
            line for line in LINES if line.strip()
        ) + b"\n"
        (tmp_path / "out.jsonl").unlink()


def test_an_input_that_shrank_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text": "a"}\n' * 10)
    source = open_source([str(path)])
    blocks = read(source)[2]
    path.write_bytes(b'{"text": "a"}\n' * 9)
    with pytest.raises(TruncatedInput, match="shorter"):
        list(source.again(blocks))


def test_formats_are_told_by_suffix_or_asked_for(tmp_path: Path) -> None:
    assert str(format_of("a/B.JSONL.GZ")) == "jsonl.gz"
    assert str(format_of("x.ndjson.zst")) == "jsonl.zst"
    assert str(format_of("x.csv")) == "csv"
    assert format_of("x.dat") is None
    assert str(format_of("x.dat", "jsonl")) == "jsonl"
    assert str(format_of(str(tmp_path))) == "folder"
    with pytest.raises(FeatureError, match="Parquet"):
        format_of("x.parquet.gz")
    with pytest.raises(FeatureError, match="unknown format 'xml'"):
        format_of("x", "xml")
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "a.dat").write_text("")
    with pytest.raises(FeatureError, match="of one format"):
        open_source([str(tmp_path / "a.jsonl"), str(tmp_path / "a.csv")])
    with pytest.raises(FeatureError, match="give --format"):
        open_source([str(tmp_path / "a.dat")])
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl"):
        open_source([str(tmp_path / "nowhere.jsonl")])
    with pytest.raises(FeatureError, match="is a folder"):
        open_source([str(tmp_path)], format="csv")
    with pytest.raises(FeatureError, match="only a folder"):
        open_survivors(open_source([str(tmp_path / "a.jsonl")]), str(tmp_path), str(tmp_path / "t"))
