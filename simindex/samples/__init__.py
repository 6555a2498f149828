"""The corpus that ships with simindex, for the demo and the tests; LICENSES.md says where it comes from."""

from pathlib import Path

CORPUS = Path(__file__).parent / "corpus.jsonl.zst"  # JSON lines: id, text, lang, set
