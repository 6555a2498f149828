"""The example of the README runs and prints what its comments say."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_example_runs_as_printed(tmp_path, monkeypatch, capsys) -> None:
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[('a1', 1.0), ('a2', 0.8181818181818182)]"
    assert lines[1] == "500 500"
    assert lines[-1] == "[]"
