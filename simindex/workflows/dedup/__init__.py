"""The main job: from a corpus on disk to its survivors, clusters and a searchable index."""

from simindex.workflows.dedup.options import Interrupted, Options, UsageError
from simindex.workflows.dedup.run import dedup
from simindex.workflows.dedup.summary import SampledRecall, Summary

__all__ = ["Interrupted", "Options", "SampledRecall", "Summary", "UsageError", "dedup"]
