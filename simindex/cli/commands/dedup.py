"""simindex dedup: the survivors of a corpus."""

from typing import Annotated, Literal

import typer

Verify = Literal["exact", "estimate"]
Accept = Literal["likely", "possible"]
Normalize = Literal["none", "nfc", "nfkc"]
OnError = Literal["fail", "skip"]
Durability = Literal["full", "relaxed"]


def dedup(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="IN...", help="JSON lines, CSV or Parquet files, text folders, or '-'."),
    ],
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="OUT", help="Where the survivors go, in the format of its suffix."
        ),
    ],
    threshold: Annotated[float, typer.Option(help="Least Jaccard similarity of a duplicate.")] = 0.8,
    field: Annotated[str, typer.Option(help="The column that is compared.")] = "text",
    key: Annotated[
        str | None,
        typer.Option(help="The column that labels items; else their number."),
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Keep all items there, a searchable file: collection `items`, keys 1 to n, field `text`.",
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write cluster members there: JSON lines of item, cluster, kept, score."
        ),
    ] = None,
    shingle: Annotated[str, typer.Option(help="What is compared: words:N or chars:N.")] = "words:3",
    normalize: Annotated[Normalize, typer.Option(help="Unicode normalisation before anything else.")] = "nfc",
    casefold: Annotated[bool, typer.Option(help="Whether upper and lower case are the same.")] = True,
    verify: Annotated[
        Verify,
        typer.Option(help="Compare true shingle sets, or estimate: a third of the space, some false links."),
    ] = "exact",
    accept: Annotated[
        Accept, typer.Option(help="Which estimates link: these, or whose interval, reach the threshold.")
    ] = "possible",
    k: Annotated[int, typer.Option(help="Slots of a signature.")] = 128,
    slots: Annotated[int | None, typer.Option(help="Bits of a slot: 8, 16 or 32.")] = None,
    bands: Annotated[
        str | None, typer.Option(metavar="B,R", help="B bands of R slots, instead of a choice by --recall.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(help="Share of pairs at the threshold to be found.", show_default="0.99")
    ] = None,
    force_bands: Annotated[
        bool, typer.Option("--force-bands", help="Accept bands of little recall.")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Threads.", show_default="all cores")] = None,
    on_error: Annotated[OnError, typer.Option(help="What a bad record does.")] = "fail",
    rejects: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the bad records that were skipped there."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="Format of the inputs, if suffixes do not tell."),
    ] = None,
    sample: Annotated[
        int, typer.Option(help="Items to measure the recall on by a full scan; 0 for none.")
    ] = 200,
    durability: Annotated[
        Durability | None,
        typer.Option(
            help="What a power cut may take of the state.", show_default="relaxed; OUT.partial: all"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite outputs that exist.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON on stdout.")] = False,
) -> None:
    """Write the items of a corpus that are not near-duplicates of an earlier one.

    Clusters are the connected components of verified links; the first item of each is kept, in input order,
    its other
    columns untouched (JSON lines: byte for byte). Items are told apart by position: --key only labels them.
    Output of
    --clusters: one JSON line per member of a cluster of two or more. Memory does not grow with the input
    but for 16
    bytes an item. A run that was stopped (Ctrl-C, kill) goes on where it was when the same command is given
    again; its
    state is OUT.partial, or --index FILE. Standard input is read once and copied to a file beside OUT until
    the end; a
    run over it starts anew after a kill.
    """
    from simindex.cli.main import INTERRUPTED, say
    from simindex.cli.output import ProgressBar, facts, print_json
    from simindex.workflows.dedup import Options
    from simindex.workflows.dedup import dedup as run

    options = Options(
        inputs=tuple(inputs),
        output=output,
        threshold=threshold,
        field=field,
        key=key,
        index=index,
        clusters=clusters,
        rejects=rejects,
        shingle=shingle,
        normalize=normalize,
        casefold=casefold,
        k=k,
        slots=slots,
        bands=None if bands is None else parse_bands(bands),
        recall=recall,
        verify=verify,
        accept=accept,
        force_bands=force_bands,
        on_error=on_error,
        format=format,
        force=force,
        threads=threads,
        durability=durability,
        sample=0 if quiet and not as_json else sample,
    )
    try:
        with ProgressBar(not quiet) as progress:
            summary = run(options, progress)
    except KeyboardInterrupt:
        where = index or f"{output}.partial"
        again = "the same command starts anew" if "-" in inputs else f"the same command goes on ({where})"
        say(f"interrupted; {again}")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(summary.to_dict())
    elif not quiet:
        facts(summary.lines(), to_stderr=True)


def parse_bands(text: str) -> tuple[int, int]:
    """Return (b, r) of "b,r". Raises a usage error for anything else."""
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"--bands is {text!r}: give two numbers, such as 16,8")
    return int(parts[0]), int(parts[1])
