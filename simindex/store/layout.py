"""THE format: every number that decides what a byte of the file means. FORMAT.md tells it in prose.

Everything here is frozen since format 1: a change needs a new FORMAT_VERSION, a migration and a fixture.
Offsets are chained, each from the one before. Integers inside values are little-endian, integers inside keys
big-endian (so that LMDB's byte order is numeric order). Databases are one per kind of data; the collection
number (and the field number) is the prefix of every key, so that one collection is one contiguous range of
each database.
"""

import struct
from functools import lru_cache

FORMAT_VERSION = 1

# Databases
# -------------------------------------------------------------------------------------------------------

META = "meta"
RECORDS = "records"
LIVE = "live"
SIGNATURES = "signatures"
POSTINGS = "postings"
ORIGINALS = "originals"
DATABASES = (META, RECORDS, LIVE, SIGNATURES, POSTINGS, ORIGINALS)

# Limits
# ----------------------------------------------------------------------------------------------------------

PAGE = 4096
OVERFLOW_HEADER = 16  # LMDB's own header at the start of a value's first overflow page
MAX_ROW = 2**32 - 2  # highest row id; 2^32 - 1 stays free to mean "none" and next_row fits in 32 bits
MAX_CHANGES = 2**32 - 1  # commits that change one collection
MAX_COLLECTION = 2**32 - 1
MAX_FIELD = 0xFFFE
KEY_MAP = 0xFFFF  # pseudo-field of the postings database: the map from item keys to rows, one band
MAX_VALUE = 2**31 - 1  # bytes of one record or original


def pages(n: int) -> int:
    """Return the largest value that fills exactly n overflow pages."""
    return n * PAGE - OVERFLOW_HEADER


# Keys
# ------------------------------------------------------------------------------------------------------------
# meta: one tag byte, then the rest.

IDENTITY = b"\x00identity"  # one entry: what this file is (store/meta.py)
NUMBERS = b"n"  # one entry: the next collection number, u32 little-endian
SCHEMA = b"s"  # | C u32: the schema, opaque to the store, after an 8-byte checked header
STATE = b"t"  # | C u32: CollectionState
CHANGES = b"f"  # | C u32: the change log
USER = b"u"  # | name: values of put_meta, after an 8-byte checked header

_C = struct.Struct(">I")
_CF = struct.Struct(">IH")
_CB = struct.Struct(">II")
_CFB = struct.Struct(">IHI")
collection_prefix = _C.pack  # C: of records and live
field_prefix = _CF.pack  # C|F: of signatures, postings and originals
block_key = _CB.pack  # C|block or C|first_row
field_block_key = _CFB.pack  # C|F|block or C|F|first_row
BLOCK_SUFFIX = _C  # the last four bytes of such a key

# Values: every one begins with a magic number and the CRC-32C of all bytes after the checksum
# -----------------------

CHECKED = struct.Struct("<4sI")
MAGIC_AT = 0
CRC_AT = MAGIC_AT + 4
CHECKED_AT = CRC_AT + 4

SCHEMA_MAGIC = b"SIC1"
USER_MAGIC = b"SIU1"
STATE_MAGIC = b"SIT1"
CHANGES_MAGIC = b"SIF1"
LIVE_MAGIC = b"SIL1"
SIGNATURES_MAGIC = b"SIS1"
HEAP_MAGIC = b"SIH1"

# Change log: floor u32, count u32, then count entries of (change u32, space u32, block u32), oldest first.
CHANGES_FLOOR_AT = CHECKED_AT
CHANGES_COUNT_AT = CHANGES_FLOOR_AT + 4
CHANGES_HEADER = CHANGES_COUNT_AT + 4
CHANGES_ENTRY = 12
CHANGES_MOST = (pages(1) - CHANGES_HEADER) // CHANGES_ENTRY
SPACE_LIVE = 0 << 16  # spaces of the change log; the low 16 bits are the field
SPACE_SIGNATURES = 1 << 16
SPACE_RECORDS = 2 << 16
SPACE_ORIGINALS = 3 << 16

# Live block: block u32, collection u32, then one bit per row (bit i % 8 of byte i // 8). csrc/views.h knows
# it too.
LIVE_BLOCK_AT = CHECKED_AT
LIVE_COLLECTION_AT = LIVE_BLOCK_AT + 4
LIVE_HEADER = LIVE_COLLECTION_AT + 4
LIVE_BYTES = pages(1)
LIVE_ROWS = 8 * (LIVE_BYTES - LIVE_HEADER)

# Signature block: the fields below, zeros up to the states, two bits of state per row of rows_per_block (row
# i: bits 2 * (i % 4) of byte i // 4), zeros up to a multiple of 16 = `header`; then `count` rows of `width`
# bytes.
SIGNATURES_BLOCK_AT = CHECKED_AT
SIGNATURES_COUNT_AT = SIGNATURES_BLOCK_AT + 4
SIGNATURES_WIDTH_AT = SIGNATURES_COUNT_AT + 4
SIGNATURES_ROWS_AT = SIGNATURES_WIDTH_AT + 4
SIGNATURES_COLLECTION_AT = SIGNATURES_ROWS_AT + 4
SIGNATURES_FIELD_AT = SIGNATURES_COLLECTION_AT + 4
SIGNATURES_HEADER = struct.Struct("<4sIIIIIII")
SIGNATURES_STATES_AT = 48
SIGNATURES_BYTES = pages(8)

# Heap block (records, originals): the fields below, zeros up to 32; count + 1 offsets u32 from the block's
# start; the bytes of `count` consecutive rows from first_row. csrc/heap.h knows it too.
HEAP_FIRST_ROW_AT = CHECKED_AT
HEAP_COUNT_AT = HEAP_FIRST_ROW_AT + 4
HEAP_COLLECTION_AT = HEAP_COUNT_AT + 4
HEAP_FIELD_AT = HEAP_COLLECTION_AT + 4
HEAP_FIELDS = struct.Struct("<4sIIIII")
HEAP_HEADER = 32
HEAP_BYTES = pages(64)  # the largest block, unless one value alone is larger
HEAP_TAIL_BYTES = pages(4)  # the last block is rewritten while it is no larger than this
HEAP_RECORDS = 0xFFFFFFFF  # "field" of the records database

# Postings, keys C|F|tag and then: delta block: run u32; segment: band u16, run u32, its first posting u64;
# manifest: nothing. Run numbers are never used again. A posting is key bits << 32 | row.
TAG_DELTA = 0
TAG_SEGMENT = 1
TAG_MANIFEST = 2
DELTA_KEY = struct.Struct(">BI")
SEGMENT_KEY = struct.Struct(">BHIQ")
MANIFEST_KEY = bytes([TAG_MANIFEST])
DELTA_MAGIC = b"SID1"
SEGMENT_MAGIC = b"SIP1"
MANIFEST_MAGIC = b"SIM1"

# A block of postings is count u64 ascending, then its directory (csrc/runblock.h). A delta holds one block
# per band, each at a multiple of 8: the fields below, then per band offset u32 and count u32.
DELTA_FIELDS = struct.Struct("<4sIII")  # magic, checksum, run, bands
DELTA_BAND = struct.Struct("<II")
# A segment holds one block at SEGMENT_HEADER: magic, checksum, run, band u16, flags u16 (1: a filter follows
# the directory; never set so far), count, reserved, first posting u64, last posting u64; zeros up to the
# block.
SEGMENT_FIELDS = struct.Struct("<4sIIHHIIQQ")
SEGMENT_HEADER = 64
SEGMENT_BYTES = pages(64)  # setting of a keyspace, in its manifest
# Manifest: the fields below, then runs, then jobs, each job followed by its inputs (u32 run numbers).
# MANIFEST_FIELDS: magic, checksum, bands, segment bytes, next run, number of runs, number of jobs, 0.
# RUN_FIELDS: run, kind (0 delta, 1 segments), postings, dead ones (estimate), transaction of the last change.
# JOB_FIELDS: level, output run, band, number of inputs, frontier, credit, postings read.
MANIFEST_FIELDS = struct.Struct("<4sIIIIIII")
RUN_FIELDS = struct.Struct("<IIQQQ")
JOB_FIELDS = struct.Struct("<IIIIQqQ")


def signature_header(rows_per_block: int) -> int:
    """Return the bytes before the rows of a signature block."""
    return (SIGNATURES_STATES_AT + (rows_per_block + 3) // 4 + 15) // 16 * 16


@lru_cache
def signature_rows(width: int, block_bytes: int = SIGNATURES_BYTES) -> int:
    """Return the most rows of `width` bytes that fit in a signature block (255 for 128 bytes)."""
    rows = max((block_bytes - SIGNATURES_STATES_AT) // width, 1)
    while rows > 1 and signature_header(rows) + rows * width > block_bytes:
        rows -= 1
    return rows


if (LIVE_HEADER, LIVE_ROWS) != (16, 32_512) or SIGNATURES_HEADER.size != SIGNATURES_FIELD_AT + 4:
    raise ImportError("store/layout.py contradicts itself")
if (8, 12, HEAP_FIELDS.size) != (HEAP_FIRST_ROW_AT, HEAP_COUNT_AT, HEAP_FIELD_AT + 4):
    raise ImportError("store/layout.py contradicts csrc/heap.h")
