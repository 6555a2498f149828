"""The format is frozen: today's code writes the golden bytes, and reads them."""

import importlib.util
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simindex.store import Store, layout

ROOT = Path(__file__).parent.parent.parent


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def maker() -> Any:
    return load(ROOT / "tools" / "golden" / "blocks.py")


def test_todays_code_writes_the_golden_bytes(maker: Any, golden: Any) -> None:
    assert maker.files()["store_entries_1.bin"] == golden("store_entries_1.bin")


def test_todays_code_reads_the_golden_bytes(maker: Any, golden: Any, tmp_path: Path) -> None:
    data, at, parts = golden("store_entries_1.bin"), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        parts.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    store = Store.open(tmp_path / "store")
    raw = store.environment.begin_write()
    for kind, key, value in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        raw.txn.put(key, value, db=raw.db(kind.decode()))
    raw.commit()
    with store.read() as snapshot:
        assert snapshot.catalog() == {1: b"a schema"}
        assert snapshot.get_meta("name") == b"value"
        table = snapshot.collection(1, maker.PLAN)
        live = np.array([*range(3), *range(30, 70)], np.uint32)
        assert np.concatenate(list(table.live_rows())).tolist() == live.tolist()
        assert (table.state.next_row, table.state.live, table.state.sequence) == (70, 43, 50)
        assert table.state.counters == {"empty": 12}
        found = table.records.values(live)
        originals = table.originals(0).values(live)
        for first, n in ((0, 50), (50, 20)):
            _, values, fields = maker.rows(first, n)
            mine = np.flatnonzero((live >= first) & (live < first + n))
            for i in mine.tolist():
                a, b = values.offsets[live[i] - first : live[i] - first + 2]
                for heap in (found, originals):
                    stored = heap.data[heap.offsets[i] : heap.offsets[i + 1]]
                    assert stored.tobytes() == values.data[a:b].tobytes()
            for number, rows in fields.items():
                signatures, states = table.signatures(number).rows(live[mine])
                assert (signatures == rows.signatures[live[mine] - first]).all()
                assert (states == rows.states[live[mine] - first]).all()
        kinds = {(finding.kind, finding.where.split()[-1]) for finding in snapshot.verify()}
        assert {kind for kind, _ in kinds} <= {"missing"}  # the postings are not among the golden bytes
    store.close()


@pytest.mark.parametrize(
    ("width", "rows", "header"), [(128, 255, 112), (64, 509, 176), (1, 26_160, 6592), (16_000, 2, 64)]
)
def test_signature_blocks_fill_eight_pages(width: int, rows: int, header: int) -> None:
    assert layout.signature_rows(width) == rows
    assert layout.signature_header(rows) == header
    assert header + rows * width <= layout.SIGNATURES_BYTES == 8 * 4096 - 16
    assert layout.signature_header(rows + 1) + (rows + 1) * width > layout.SIGNATURES_BYTES


def test_the_headers_of_csrc_say_what_layout_says() -> None:
    csrc = ROOT / "simindex" / "kernels" / "csrc"
    stated = {
        name: int(value)
        for path in ("views.h", "heap.h", "blocks.h")
        for name, value in re.findall(r"#define (SI_\w+) (\d+)u", (csrc / path).read_text())
    }
    assert stated == stated | {
        "SI_LIVE_HEADER": layout.LIVE_HEADER,
        "SI_LIVE_ROWS": layout.LIVE_ROWS,
        "SI_HEAP_HEADER": layout.HEAP_HEADER,
        "SI_HEAP_FIRST_ROW": layout.HEAP_FIRST_ROW_AT,
        "SI_HEAP_COUNT": layout.HEAP_COUNT_AT,
        "SI_BLOCK_CRC": layout.CRC_AT,
        "SI_BLOCK_CHECKED": layout.CHECKED_AT,
        "SI_SIGNATURE_STATES": layout.SIGNATURES_STATES_AT,
    }
