"""Plain twins of kernels._links: every pair in a bucket is tried, and components are searched for."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import combinations

from simindex.types import U8, U64


def pairs_in_buckets(bands: Iterable[U64]) -> set[tuple[int, int]]:
    """Return every pair (a < b) of rows that share a bucket in some band of postings."""
    pairs: set[tuple[int, int]] = set()
    for postings in bands:
        buckets: defaultdict[int, list[int]] = defaultdict(list)
        for posting in postings.tolist():
            buckets[posting >> 32].append(posting & 0xFFFFFFFF)
        for rows in buckets.values():
            pairs.update(combinations(sorted(rows), 2))
    return pairs


def equal_slots(a: U8, b: U8, slot_bytes: int) -> int:
    """Return how many slots of two signatures are equal."""
    return int((a.reshape(-1, slot_bytes) == b.reshape(-1, slot_bytes)).all(axis=1).sum())


def components(rows: int, links: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first row of each row's component."""
    near: defaultdict[int, set[int]] = defaultdict(set)
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    label = [-1] * rows
    for row in range(rows):
        if label[row] < 0:
            label[row] = row
            todo = [row]
            while todo:
                for other in near[todo.pop()]:
                    if label[other] < 0:
                        label[other] = row
                        todo.append(other)
    return label


def linked_components(
    bands: Iterable[U64],
    signatures: U8,
    slot_bytes: int,
    min_equal: int,
    is_link: Callable[[int, int], bool] | None = None,
) -> list[int]:
    """Return the components of all pairs that share a bucket, have min_equal equal slots and are links."""
    links = [
        (a, b)
        for a, b in pairs_in_buckets(bands)
        if equal_slots(signatures[a], signatures[b], slot_bytes) >= min_equal
        and (is_link is None or is_link(a, b))
    ]
    return components(len(signatures), links)
