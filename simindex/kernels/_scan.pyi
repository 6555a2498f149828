from simindex.types import I64, U8, U16, U32, U64

def _select(level: int) -> None: ...
def count_equal(rows: U8, query: U8, slot_bytes: int) -> U16: ...
def pair_equal(
    addresses: U64, rows_per_block: int, header: int, width: int, slot_bytes: int, rows_a: U32, rows_b: U32
) -> U16: ...
def gather_equal(
    addresses: U64,
    rows_per_block: int,
    header: int,
    width: int,
    slot_bytes: int,
    queries: U8,
    query_of: U32,
    rows: U32,
) -> U16: ...
def scan_equal(
    addresses: U64,
    rows_per_block: int,
    header: int,
    width: int,
    slot_bytes: int,
    queries: U8,
    n_rows: int,
    live: U64,
    min_equal: U16 | None = None,
    k: int | None = None,
) -> tuple[I64, U32, U16]: ...
def band_keys(signatures: U8, bands: int, rows: int, slot_bytes: int) -> U64: ...
def band_postings(
    signatures: U8, states: U8, bands: int, rows: int, slot_bytes: int, first_row: int = 0
) -> U64: ...
def key_postings(keys: U64, states: U8, first_row: int = 0) -> U64: ...
