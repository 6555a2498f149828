"""One dedup run from beginning to end, or from where the last one stopped."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

from simindex.errors import FeatureError
from simindex.index.layouts import layout_of
from simindex.index.links import Components, links
from simindex.workflows.dedup.ingest import Ingest
from simindex.workflows.dedup.options import FIELD, Options, UsageError
from simindex.workflows.dedup.outputs import Sizes, label_index, write_clusters, write_survivors
from simindex.workflows.dedup.sampling import sampled_recall
from simindex.workflows.dedup.state import State, is_foreign, is_ours, remove_store, remove_unmade
from simindex.workflows.dedup.summary import SampledRecall, Summary
from simindex.workflows.io import Source, TruncatedInput, identity, open_source, output_format, total_bytes
from simindex.workflows.io.streams import Output, sync_folder

Progress = Callable[[str, int, int | None], None]


def _silent(stage: str, done: int, total: int | None) -> None:
    pass


def dedup(options: Options, progress: Progress = _silent) -> Summary:
    """Write the survivors of the inputs to options.output: the first item of every component of verified
    links.

    progress: called with (stage, done, of how much or None): "reading" and "writing" count bytes,
        "linking" postings.
    Nothing is at the output path before the end. A run that was stopped left its state; the same options go
    on
    from it, in the same process or another. Raises UsageError for options that contradict each other, what
    exists,
    or the state; BadRecord for a bad record with on_error="fail"; TruncatedInput; WriteError (DiskFull, ...).
    Memory: a constant (some tens of MB a thread) plus at most 16 bytes an item. Pages of the state file that
    links
    touch are mapped too: they count as resident, but are the kernel's to take back.
    """
    return _Run(options, progress).run()


class _Run:
    def __init__(self, options: Options, progress: Progress) -> None:
        self.options = options
        self.progress = progress
        self.started = time.perf_counter()
        self.work = (
            options.output.rstrip("/") + ".partial"
        )  # the scratch state, and the stem of its companions
        self.spool = self.work + ".stdin"
        self.schema = options.schema()

    def run(self) -> Summary:
        options = self.options
        options.check()
        source = open_source(options.inputs, options.field, options.key, options.format, self.spool)
        output_format(source, options.output)
        state = self._state(source)
        try:
            resumed_at = state.rows
            if state.phase == "reading":
                self._read(source, state)
            summary = self._finish(source, state, resumed_at)
        except (FeatureError, TruncatedInput):
            if state.is_new and state.commits == 0:  # nothing to go on from: the mended command starts anew
                state.remove()
            raise
        finally:
            state.close()
        self._clean()
        return summary

    def _state(self, source: Source) -> State:
        options = self.options
        path = options.index or self.work
        is_stdin = source.files[0].is_stdin
        exists = os.path.exists(path)
        if exists and options.index is not None and not is_ours(path):
            raise UsageError(f"--index {path} exists and was not made by dedup: name another file")
        options.check_existing(exists and not is_stdin)
        if exists and is_stdin:
            # What was read from standard input last time cannot be compared with what will come now.
            if options.index is not None and not options.force:
                raise UsageError(f"--index {path} exists already: --force makes it anew")
            if is_foreign(path):
                raise UsageError(
                    f"{path} is in the way, and dedup did not make it: move it, or name another output"
                )
            remove_store(path)
        durability = options.durability or ("relaxed" if options.index is not None else None)
        state = State.open(path, self.schema, options.settings(), identity(source), durability)
        if state.phase == "done":
            state.close()
            if not options.force and not os.path.lexists(self.work + ".out"):  # no kill before the renames
                raise UsageError(f"--index {path} is complete already: --force makes it anew")
            remove_store(path)
            state = State.open(path, self.schema, options.settings(), identity(source), durability)
        return state

    def _read(self, source: Source, state: State) -> None:
        total = total_bytes(source)
        compressed = any(file.compression for file in source.files)
        read = [0]
        if compressed or total is None:
            for file in source.files:
                file.on_read = lambda count: read.__setitem__(0, read[0] + count)

        def report(stage: str, done: int, _: int | None) -> None:
            self.progress(stage, read[0] if compressed else done, total)

        rejects = self.work + ".rejects" if self.options.rejects is not None else None
        Ingest(source, state, self.options, rejects, report).run()

    def _finish(self, source: Source, state: State, resumed_at: int) -> Summary:
        options, field = self.options, self.schema.fields[FIELD]
        number = self.schema.numbers[FIELD]
        lowest: tuple[float | None, int] = (None, 0)
        finals: list[Any] = []
        with state.store.read() as snapshot:
            table = snapshot.collection(state.number, layout_of(self.schema))
            found: Components = links(
                table, number, field, accept=options.accept, threads=options.workers,
                progress=lambda done, total: self.progress("linking", done, total),
            )  # fmt: skip
            sizes = Sizes(found.labels)
            sampled: SampledRecall | None = None
            if options.sample and state.rows:
                sampled = sampled_recall(table, state.path, number, field, options.accept, options.sample)
            if options.clusters is not None:
                clusters = Output(options.clusters, self.work + ".clusters")
                finals.append(clusters)
                lowest = write_clusters(
                    state, table, found.labels, sizes.sizes, clusters, options.keeps_labels
                )
        if options.rejects is not None:
            finals.append(_Rejects(options.rejects, self.work + ".rejects"))
        done = [0]
        total = sum(block.stop - block.offset for block in state.blocks)

        def step(count: int) -> None:
            done[0] += count
            self.progress("writing", done[0], total)

        survivors = write_survivors(
            source, state, found.labels, options.output, self.work + ".out", options.workers, step
        )
        if options.index is not None:
            label_index(state, found.labels, sizes.sizes)
            state.store.environment.sync()
        for output in finals:
            output.finish()
        survivors.finish()
        seconds = time.perf_counter() - self.started
        counts = state.counts
        return Summary(
            output=options.output,
            items=state.rows,
            kept=state.rows - sizes.duplicates,
            duplicates=sizes.duplicates,
            clusters=sizes.clusters,
            largest_cluster=sizes.largest if sizes.clusters else min(1, state.rows),
            absent=counts["absent"],
            empty=counts["empty"],
            shortened=counts["shortened"],
            rejected=counts["rejected"],
            threshold=field.threshold,
            verify=field.verify,
            bands=field.bands,
            rows=field.rows,
            expected_recall=field.expected_recall(field.threshold, accept=options.accept),
            sampled=sampled,
            cut=found.cut,
            lowest_score=lowest[0],
            lowest_item=lowest[1] or None,
            bytes=counts["bytes"],
            seconds=seconds,
            mb_per_s=counts["bytes"] / 1e6 / max(seconds, 1e-9),
            resumed_at=resumed_at,
        )

    def _clean(self) -> None:
        """Delete what only a run that is under way needs."""
        if self.options.index is None or not is_foreign(self.work):
            remove_store(self.work)
        if self.options.index is not None:
            remove_unmade(self.options.index)
        for name in (self.spool, self.work + ".out", self.work + ".clusters", self.work + ".rejects"):
            if os.path.isdir(name):
                shutil.rmtree(name)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


class _Rejects:
    def __init__(self, path: str, temporary: str) -> None:
        self.path, self.temporary = path, temporary

    def finish(self) -> None:
        if not os.path.exists(self.temporary) and os.path.exists(self.path):
            return  # a run that was killed after this rename got so far
        os.replace(self.temporary, self.path)
        sync_folder(self.path)
