"""put_many's pipeline: some threads prepare batches while the caller's thread writes them, in order."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

from simindex.index.ingest import Batch, RowBatch, batches, prepare_batch
from simindex.index.prepare import Prepared
from simindex.index.results import PutReport, Reject
from simindex.index.schema import Schema

Ready = tuple[Prepared, list[Reject], list[int]]


def put_all(
    schema: Schema, rows: Any, size: int, skip: bool, threads: int, write: Callable[[Prepared], PutReport]
) -> PutReport:
    """Prepare and write all batches of `rows`; return the sum of their reports.

    The input is read in the caller's thread, at most threads + 1 batches ahead of the write. An error stops
    the reading; batches that were written stay.
    """
    report = PutReport()
    with closing(_prepared(schema, batches(schema, rows, size), skip, threads)) as ready:
        for prepared, rejects, _ in ready:
            if len(prepared):
                report.add(write(prepared))
            report.rejects += rejects
    return report


def _prepared(
    schema: Schema, source: Iterator[RowBatch | Batch], skip: bool, threads: int
) -> Generator[Ready]:
    if threads == 0:
        for batch in source:
            yield prepare_batch(schema, batch, skip)
        return
    first = next(source, None)
    if first is None:
        return
    second = next(source, None)
    if second is None:  # one batch: nothing to do beside it
        yield prepare_batch(schema, first, skip)
        return
    waiting: deque[Future[Ready]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="simindex-prepare") as pool:
        try:
            waiting.extend(pool.submit(prepare_batch, schema, batch, skip) for batch in (first, second))
            while waiting:
                while len(waiting) <= threads:
                    further = next(source, None)
                    if further is None:
                        break
                    waiting.append(pool.submit(prepare_batch, schema, further, skip))
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
