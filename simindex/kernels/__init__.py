"""Pure functions on arrays: compiled kernels, and a plain numpy twin of each in `reference`.

No input or output, no objects, no state but the chosen instruction-set level. Upper floors import from here only.
"""

from simindex.kernels import dispatch
from simindex.kernels._blocks import (
    address_of,
    are_live,
    clear_live,
    count_live,
    crc32c,
    fill_heap,
    gather_signatures,
    heap_is_sound,
    heap_value,
    heap_values,
    is_sealed,
    list_live,
    missing_blocks,
    missing_heap_blocks,
    put_signatures,
    seal,
    set_live,
)
from simindex.kernels._sets import (
    intersect_packed,
    intersect_pairs,
    intersect_sets,
    jaccard_packed,
    least_inter,
    pack_sets,
    packed_count,
    set_width,
    unpack_set,
)

__all__ = [
    "address_of",
    "are_live",
    "clear_live",
    "count_live",
    "crc32c",
    "dispatch",
    "fill_heap",
    "gather_signatures",
    "heap_is_sound",
    "heap_value",
    "heap_values",
    "intersect_packed",
    "intersect_pairs",
    "intersect_sets",
    "is_sealed",
    "jaccard_packed",
    "least_inter",
    "list_live",
    "missing_blocks",
    "missing_heap_blocks",
    "pack_sets",
    "packed_count",
    "put_signatures",
    "seal",
    "set_live",
    "set_width",
    "unpack_set",
]
