"""What the user asked of a dedup run, checked, and the part of it that decides the result."""

import os
from dataclasses import asdict, dataclass
from typing import Any

from simindex.errors import FeatureError, SimindexError
from simindex.index.field import text
from simindex.index.schema import Schema

COLLECTION = "items"
FIELD = "text"
ON_ERROR = ("fail", "skip")
COMPANIONS = ("-lock", ".stdin", ".out", ".clusters", ".rejects")  # of the scratch state OUT.partial


class UsageError(FeatureError):
    """The command cannot mean what it says, or would overwrite something; nothing was written."""


class Interrupted(SimindexError):
    """The run was stopped by the user; its state is on disk and the same command goes on from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One dedup run.

    inputs: paths, or "-" for standard input. output: where the survivors go. field: the column that is
        compared.
    key: the column that labels items in --clusters and in the index. index: keep the state there as a
        searchable
    file. clusters, rejects: more outputs. shingle, normalize, casefold, k, slots, bands, recall, verify: as
    in
    simindex.text(). accept: with verify="estimate", what links a pair: "likely": its estimate reaches the
    threshold, "possible": the upper end of the estimate's 95 % interval does. force_bands: accept a candidate
    recall below 0.8. sample: items whose duplicates are searched by a full scan to measure the recall, 0 for
    none. threads: None is all cores. durability: "full" or "relaxed" as in simindex.open(); None is "relaxed"
    for --index and no syncs at all for the scratch state.
    """

    inputs: tuple[str, ...]
    output: str
    threshold: float = 0.8
    field: str = "text"
    key: str | None = None
    index: str | None = None
    clusters: str | None = None
    rejects: str | None = None
    shingle: str = "words:3"
    normalize: str = "nfc"
    casefold: bool = True
    k: int = 128
    slots: int | None = None
    bands: tuple[int, int] | None = None
    recall: float | None = None
    verify: str = "exact"
    accept: str = "possible"
    force_bands: bool = False
    on_error: str = "fail"
    format: str | None = None
    force: bool = False
    threads: int | None = None
    durability: str | None = None
    sample: int = 200

    def schema(self) -> Schema:
        """Return the schema of the run's collection. Raises SchemaError for settings that make no sense."""
        field = text(
            threshold=self.threshold,
            shingle=self.shingle,
            normalize=self.normalize,
            casefold=self.casefold,
            k=self.k,
            slots=self.slots,
            bands=self.bands,
            recall=self.recall,
            verify=self.verify,
            force=self.force_bands,
        )
        return Schema.build(COLLECTION, {FIELD: field}, "int")

    @property
    def workers(self) -> int:
        """Number of threads."""
        return self.threads if self.threads is not None else available_cores()

    @property
    def keeps_labels(self) -> bool:
        """Whether the state must hold what --key names."""
        return self.key is not None and (self.clusters is not None or self.index is not None)

    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a run to go on: all that decides the result, as JSON values."""
        names = (
            "field", "key", "threshold", "shingle", "normalize", "casefold", "k", "slots", "bands", "recall",
            "verify", "accept", "on_error", "format",
        )  # fmt: skip
        found = {name: value for name, value in asdict(self).items() if name in names}
        found["bands"] = None if self.bands is None else list(self.bands)
        found["labels"] = self.keeps_labels
        found["rejects"] = self.rejects is not None
        return found

    def check(self) -> None:
        """Raise UsageError for options that contradict each other or would overwrite something."""
        if self.on_error not in ON_ERROR:
            raise UsageError(f"--on-error is {self.on_error!r}: one of {', '.join(ON_ERROR)}")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"--threads is {self.threads}: give 1 or more")
        if self.sample < 0:
            raise UsageError(f"--sample is {self.sample}: give 0 (none) or more")
        if self.rejects is not None and self.on_error != "skip":
            raise UsageError("--rejects needs --on-error skip: with fail the first bad record ends the run")
        self._check_paths()

    def _check_paths(self) -> None:
        outputs = {
            "-o": self.output,
            "--clusters": self.clusters,
            "--rejects": self.rejects,
            "--index": self.index,
        }
        work = os.path.realpath(self.output.rstrip("/") + ".partial")
        companions = {work, *(work + end for end in COMPANIONS)}
        seen: dict[str, str] = {os.path.realpath(path): path for path in self.inputs if path != "-"}
        for real, given in seen.items():
            if real in companions:
                raise UsageError(f"input {given} has the name of a file that the run makes: rename it")
        folders = [real for real in seen if os.path.isdir(real)]
        for name, path in outputs.items():
            if path is None:
                continue
            if not path:
                raise UsageError(f"{name} is empty: name a file")
            real = os.path.realpath(path)
            if real in companions:
                raise UsageError(f"{name} {path} has the name of a file that the run makes: name another")
            if os.path.exists(real) and not os.path.isfile(real):
                if not os.path.isdir(real):
                    raise UsageError(f"{name} {path} is a pipe or device: name a file")
                if name != "-o":
                    raise UsageError(f"{name} {path} is a folder: name a file")
            inside = next((seen[other] for other in seen if other.startswith(os.path.join(real, ""))), None)
            if inside is not None:  # overwriting the folder would delete it
                raise UsageError(f"{name} {path} is a folder that holds {inside}: name another")
            if real in seen:
                raise UsageError(f"{name} {path} is also {seen[real]}: name another file")
            if any(real.startswith(folder + os.sep) for folder in folders):
                raise UsageError(f"{name} {path} lies inside an input folder: put it elsewhere")
            seen[real] = f"{name} {path}"
            parent = os.path.dirname(real)
            if not os.path.isdir(parent):
                raise UsageError(f"{name} {path}: there is no folder {parent}")
            if not os.access(parent, os.W_OK):
                raise UsageError(f"{name} {path}: the folder {parent} cannot be written to")

    def check_existing(self, is_resumed: bool) -> None:
        """Raise UsageError if an output exists already and force is not given.

        A run that was stopped at its very end may have left its clusters and rejects, but not its survivors.
        """
        if self.force:
            return
        more = () if is_resumed else (("--clusters", self.clusters), ("--rejects", self.rejects))
        for name, path in (("-o", self.output), *more):
            if path is not None and os.path.lexists(path):
                raise UsageError(f"{name} {path} exists already: --force overwrites it")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def difference(stored: dict[str, Any], asked: dict[str, Any]) -> str | None:
    """Return what differs between two runs' settings or inputs, in words; None if nothing does."""
    for name in dict.fromkeys([*stored, *asked]):
        if stored.get(name) != asked.get(name):
            return f"{name} was {stored.get(name)!r} and is {asked.get(name)!r} now"
    return None
