"""The command line as a user meets it: exit codes, streams, JSON, messages."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROWS = [
    {"key": "a1", "body": "the blue canal boat passed under the old stone bridge at noon", "lang": "en"},
    {
        "key": "a2",
        "body": "the blue canal boat passed under the old stone bridge at noon today",
        "lang": "en",
    },
    {"key": "b1", "body": "nothing like it was ever said about the weather of the coming week", "lang": "en"},
]


def simindex(
    *arguments: Any, code: int = 0, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command; fail with its messages if it ends with another exit code."""
    command = [sys.executable, "-m", "simindex.cli.main", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "news.simdb"
    simindex("create", path, "news", "--field", "body=text,threshold=0.7", "--field", "tags=tokens")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row | {"tags": row["body"].split()}) + "\n" for row in ROWS))
    simindex("put", path, "news", rows)
    return path


def test_help_lists_every_verb_and_starts_fast() -> None:
    text = simindex("--help").stdout.decode()
    for verb in (
        "dedup",
        "create",
        "put",
        "get",
        "delete",
        "search",
        "explain",
        "stats",
        "check",
        "compact",
        "demo",
    ):
        assert f"\n  {verb} " in text
        assert b"--help" in simindex(verb, "--help").stdout
    assert b"simindex 0." in simindex("--version").stdout
    code = "import sys; import simindex.cli.main; print('numpy' in sys.modules, 'rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False False\n"


def test_search_get_delete_and_stats(store: Path) -> None:
    found = json.loads(simindex("search", store, "news", ROWS[0]["body"], "--field", "body", "--json").stdout)
    assert [hit["key"] for hit in found["hits"]] == ["a1", "a2"]
    assert found["hits"][0]["score"] == 1.0
    lines = simindex("search", store, "news", ROWS[0]["body"], "--field", "body").stdout.decode().splitlines()
    assert lines[0].split("\t")[:2] == ["a1", "1.0000"]
    tokens = json.loads(
        simindex("search", store, "news", "blue canal", "--field", "tags", "--k", 1, "--json").stdout
    )
    assert tokens["hits"][0]["key"] == "a1"
    stdin = simindex(
        "search", store, "news", "-", "--field", "body", "--json", stdin=ROWS[2]["body"].encode()
    )
    assert json.loads(stdin.stdout)["hits"][0]["key"] == "b1"
    assert json.loads(simindex("get", store, "news", "a1", "--json").stdout) == {"key": "a1", "lang": "en"}
    assert b"lang  en" in simindex("get", store, "news", "a1").stdout
    assert b"zz: no such key" in simindex("get", store, "news", "zz", "a1", code=3).stderr
    assert json.loads(simindex("delete", store, "news", "a2", "zz", "--json").stdout) == {
        "deleted": 1,
        "missing": 1,
    }
    assert b"1 deleted" in simindex("delete", store, "news", "b1").stdout
    assert json.loads(simindex("stats", store, "--json").stdout)["items"] == 1
    assert b"news" in simindex("stats", store).stdout
    assert json.loads(simindex("compact", store, "--json").stdout)["items"] == 1
    assert json.loads(simindex("check", store, "--json").stdout)["findings"] == []
    assert b"sound" in simindex("check", store).stderr


def test_explain_tells_plan_and_recall(store: Path) -> None:
    assert b"plan: scan" in simindex("explain", store, "news", "--field", "body").stdout
    found = json.loads(
        simindex("explain", store, "news", "--field", "body", "--plan", "buckets", "--json").stdout
    )
    assert found["plan"] == "buckets"
    assert 0.98 < found["recall"] <= 1


def test_put_reports_duplicates_and_rejects(store: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"id": 5, "body": ROWS[0]["body"]}))
    failed = simindex("put", store, "news", more, "--key", "id", code=2)
    assert b"key 5 is int" in failed.stderr
    more.write_text(json.dumps({"id": "5", "body": ROWS[0]["body"]}) + "\nbroken\n" + '{"body": "no key"}\n')
    failed = simindex("put", store, "news", more, "--key", "id", code=3)
    assert b"more.jsonl, line 2: not JSON" in failed.stderr
    done = simindex(
        "put", store, "news", more, "--key", "id", "--on-error", "skip", "--on-duplicate", "skip",
        "--field", "body", "--json",
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert (report["inserted"], report["skipped"]) == (0, 1)
    assert report["duplicates"] == [{"key": "5", "other": "a1", "score": 1.0}]
    assert [(r["line"], r["error"][:8]) for r in report["rejects"]] == [(2, "not JSON"), (3, "no key: ")]


def test_put_reads_csv_with_integer_keys_and_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "numbers.simdb"
    simindex("create", path, "c", "--field", "body=text", "--key", "int")
    (tmp_path / "in.csv").write_text("key,body,note\n7,a b c d,x\n8,e f g h,y\n")
    simindex("put", path, "c", tmp_path / "in.csv")
    simindex("put", path, "c", "-", stdin=b'{"key": 9, "body": "i j k"}\n')
    assert json.loads(simindex("get", path, "c", "7", "--json").stdout) == {"key": 7, "note": "x"}
    assert json.loads(simindex("stats", path, "--json").stdout)["items"] == 3
    assert b"integers" in simindex("get", path, "c", "seven", code=2).stderr


def test_check_finds_damage_and_says_so_by_exit_code(store: Path) -> None:
    data = bytearray(store.read_bytes())
    at = data.find(b"\x93\xd9") if b"\x93\xd9" in data else data.find(b"lang")
    data[at + 1] ^= 0x40
    store.write_bytes(bytes(data))
    done = simindex("check", store, "--json", code=1)
    assert json.loads(done.stdout)["findings"]
    assert simindex("check", store, code=1).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("frobnicate",), 2, "No such command"),
        (("dedup", "x.jsonl"), 2, "Missing option"),
        (("dedup", "missing.jsonl", "-o", "out.jsonl"), 3, "no such file"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--threshold", "1.5"), 2, "threshold"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--threshold", "nan"), 2, "threshold"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--threshold", "much"), 2, "'--threshold'"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--bands", "16"), 2, "16,8"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--bands", "16,9"), 2, "144"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--shingle", "lines:3"), 2, "lines:3"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--verify", "maybe"), 2, "maybe"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--field", "body"), 2, "the first has: text"),
        (("dedup", "in.jsonl", "-o", "out.jsonl", "--threads", "0"), 2, "--threads is 0"),
        (("dedup", "in.jsonl", "-o", "out.xyz"), 2, "its suffix is none of"),
        (("dedup", "in.jsonl", "-o", "in.jsonl"), 2, "is also"),
        (("dedup", "in.jsonl", "-o", "there.jsonl"), 2, "--force"),
        (("dedup", "bad.jsonl", "-o", "out.jsonl"), 3, "bad.jsonl, line 2: not JSON"),
        (("dedup", "cut.jsonl.gz", "-o", "out.jsonl"), 3, "cut.jsonl.gz"),
        (("stats", "missing.simdb"), 3, "no such file"),
        (("stats", "in.jsonl"), 3, "not a simindex"),
        (("put", "missing.simdb", "c", "in.jsonl"), 3, "simindex create"),
        (("create", "new.simdb", "c", "--field", "body"), 2, "NAME=text"),
        (("create", "new.simdb", "c", "--field", "body=text,thresold=0.8"), 2, "threshold"),
    ],
)
def test_errors_are_one_line_with_their_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, message: str
) -> None:
    import gzip

    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text('{"text": "a b c"}\n')
    Path("there.jsonl").write_text("precious")
    Path("bad.jsonl").write_text('{"text": "a b c"}\n{"text": \n')
    Path("cut.jsonl.gz").write_bytes(gzip.compress(os.urandom(1000))[:-20])
    done = simindex(*arguments, code=code)
    assert message in done.stderr.decode().replace("\n", " ")
    assert Path("there.jsonl").read_text() == "precious"
    assert not Path("out.jsonl").exists()


def test_dedup_prints_its_summary_on_stderr_or_as_json(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "one two three four"}\n' * 3 + '{"text": "other words are here"}\n')
    done = simindex("dedup", source, "-o", out)
    assert done.stdout == b""
    for word in (
        "items",
        "empty",
        "shortened",
        "duplicates",
        "clusters",
        "expected recall",
        "sampled recall",
        "MB/s",
    ):
        assert word in done.stderr.decode()
    found = json.loads(simindex("dedup", source, "-o", out, "--force", "--json").stdout)
    assert (found["items"], found["kept"], found["clusters"], found["largest_cluster"]) == (4, 2, 1, 3)
    assert found["sampled"]["recall"] == 1.0
    assert simindex("dedup", source, "-o", out, "--force", "--quiet").stderr == b""


@pytest.mark.parametrize("content", [b"", b'{"text": "one"}\n', b'{"text": "a b c"}\n{"text": "d e f"}\n'])
def test_a_corpus_without_duplicates_is_fine(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in.jsonl").write_bytes(content)
    simindex("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", "--clusters", tmp_path / "c.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == content
    assert (tmp_path / "c.jsonl").read_bytes() == b""


def test_standard_input_is_deduplicated(tmp_path: Path) -> None:
    lines = [
        b'{"text": "one two three four"}\n',
        b'{"text": "five six seven"}\n',
        b'{"text": "one two three four"}',
    ]
    simindex("dedup", "-", "-o", tmp_path / "out.jsonl", stdin=b"".join(lines))
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(lines[:2])
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    with source.open("w") as file:
        for i in range(60_000):
            file.write(
                json.dumps({"text": f"item {i} of many, {i * 7919 % 1000} and {i % 13} more words " * 5})
                + "\n"
            )
    slow = (
        "from simindex.workflows.dedup import ingest; from simindex.workflows.io import jsonl; import time\n"
        "ingest.COMMIT_BYTES = 100_000; jsonl.JsonLines.__init__.__defaults__ = (50_000,)\n"
        "commit = ingest.State.commit\n"
        "def commits(*a): time.sleep(0.02); return commit(*a)\n"
        "ingest.State.commit = commits\n"
        "from simindex.cli.main import main; main()"
    )
    command = [sys.executable, "-c", slow, "dedup", str(source), "-o", str(out), "--threads", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as child:
        deadline = time.monotonic() + 60
        while not (tmp_path / "out.jsonl.partial").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        _, message = child.communicate(timeout=60)
    assert child.returncode == 130, message.decode()
    assert b"the same command goes on" in message
    assert not out.exists()
    found = json.loads(simindex("dedup", source, "-o", out, "--json").stdout)
    assert found["items"] == 60_000
    assert found["resumed_at"] > 0


def test_demo_needs_no_arguments_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = simindex("demo").stdout.decode()
    assert "duplicates" in text
    assert "check: no findings" in text
    found = json.loads(simindex("demo", "--json").stdout)
    assert found["findings"] == 0
    assert found["summary"]["duplicates"] > 500
    assert {example["kept"].split("/")[0] for example in found["examples"]} >= {
        "licenses",
        "gesetze",
        "poems",
    }
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """The limit on the size of files stands for the disk; the first commit is beyond it."""
    import resource

    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f'{{"text": "item {i} of many more words {i * 7}"}}\n' for i in range(40_000)))
    command = [sys.executable, "-m", "simindex.cli.main", "dedup", str(source), "-o", str(out)]
    limit = (2 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    done = subprocess.run(
        command, capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    )
    assert done.returncode == 3, done.stderr.decode()
    assert b"no room" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Errno" not in done.stderr
    assert not out.exists()
    simindex("dedup", source, "-o", out)
    assert len(out.read_bytes().splitlines()) > 1000


@pytest.mark.parametrize("verb", [("get",), ("search",)])
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_what_the_terminal_cannot_show_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...], encoding: str
) -> None:
    simindex("create", tmp_path / "f", "c", "--field", "text=text")
    row = b'{"key":"e","text":"x y z","note":"\\u00fc \\ud800 \\n"}\n'
    simindex("put", tmp_path / "f", "c", "-", stdin=row)
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    shown = simindex(*verb, tmp_path / "f", "c", "e" if verb == ("get",) else "x y z").stdout
    assert b"ud800" in shown
    assert ("ü".encode() if encoding == "utf-8" else rb"\xfc") in shown


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "simindex", "--version"], capture_output=True, check=True)
    assert done.stdout.startswith(b"simindex ")
