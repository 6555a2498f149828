"""One batch of put_many inside a transaction: duplicates, then the write, then the report."""

from typing import Any

import numpy as np

from simindex.index.duplicates import find_duplicates
from simindex.index.prepare import Prepared
from simindex.index.request import Search
from simindex.index.results import PutReport
from simindex.index.schema import Schema
from simindex.index.writer import Writer


def put_batch(
    table: Any, schema: Schema, prepared: Prepared, search: Search | None = None, policy: str | None = None
) -> PutReport:
    """Write a batch (nothing of it with policy "report") and return its counts and duplicates."""
    report = PutReport()
    report.empty, report.shortened = prepared.count_states()
    if search is not None and policy is not None:
        fresh, report.duplicates = find_duplicates(table, schema, prepared, search, policy)
        if policy == "report":
            report.skipped = len(prepared)
            return report
        if policy == "skip":
            report.skipped = len(prepared) - len(fresh)
            prepared = prepared.take(schema, np.asarray(fresh))
    if len(prepared) == 0:
        return report
    writer = Writer(table, schema)
    outcome = writer.put(prepared)
    report.inserted, report.replaced, report.unchanged = outcome.inserted, outcome.replaced, outcome.unchanged
    if outcome.replaced:
        writer.move_sparse_rows()
    return report
