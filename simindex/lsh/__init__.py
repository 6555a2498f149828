"""Which signatures meet: bucket keys of bands, their curves and their tuning."""

from simindex.lsh import curves
from simindex.lsh.bands import Bands
from simindex.lsh.scheme import Scheme
from simindex.lsh.tune import Tuning, check_threshold, datasketch_optimum, describe, recall_first, tune

__all__ = [
    "Bands",
    "Scheme",
    "Tuning",
    "check_threshold",
    "curves",
    "datasketch_optimum",
    "describe",
    "recall_first",
    "tune",
]
