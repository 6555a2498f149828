from typing import final

from simindex.types import U8, U32, U64

def _select(level: int) -> None: ...

@final
class Finder:
    def __init__(
        self,
        runs: U64,
        live: U64,
        blocks: U64,
        rows_per_block: int,
        header: int,
        width: int,
        slot_bytes: int,
        bands: int,
        rows: int,
        record_rows: U32,
        record_blocks: U64,
        original_rows: U32 | None = None,
        original_blocks: U64 | None = None,
    ) -> None: ...
    def find(
        self, hashes: U64, least: int, threshold: float, signature: U8 | None = None
    ) -> list[tuple[int | str | bytes, float, int, bytes | None]] | None: ...
