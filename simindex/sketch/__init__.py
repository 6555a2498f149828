"""Families of signatures: from features to fixed-width bytes, and what their agreement means."""

from simindex.sketch import datasketch, minhash
from simindex.sketch.family import (
    JACCARD,
    Family,
    Measure,
    SlotFamily,
    families,
    family,
    identity,
    nearest,
    register,
)
from simindex.sketch.fastsim import FastSim, FastSimStream
from simindex.sketch.minhash import MinHash, from_datasketch

__all__ = [
    "JACCARD",
    "Family",
    "FastSim",
    "FastSimStream",
    "Measure",
    "MinHash",
    "SlotFamily",
    "datasketch",
    "families",
    "family",
    "from_datasketch",
    "identity",
    "minhash",
    "nearest",
    "register",
]
