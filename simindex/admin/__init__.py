"""What keeps a database in order: overview, check, compact. Plain results; nothing here prints."""

from simindex.admin.check import check
from simindex.admin.compact import Compaction, compact
from simindex.admin.overview import Overview, overview
from simindex.store import Finding

__all__ = ["Compaction", "Finding", "Overview", "check", "compact", "overview"]
