"""simindex put: items of files into a collection."""

from typing import Annotated, Literal

import typer

OnError = Literal["fail", "skip"]
OnDuplicate = Literal["skip", "keep", "report"]


def put(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file.")],
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")],
    inputs: Annotated[
        list[str], typer.Argument(metavar="IN...", help="JSON lines, CSV, Parquet, text folders, or '-'.")
    ],
    key: Annotated[str, typer.Option(help="The column that is the key.")] = "key",
    format: Annotated[str | None, typer.Option(help="Format of the inputs, if suffixes do not tell.")] = None,
    on_error: Annotated[OnError, typer.Option(help="What a bad record does.")] = "fail",
    on_duplicate: Annotated[
        OnDuplicate | None, typer.Option(help="Find near-duplicates first, and do this with them.")
    ] = None,
    field: Annotated[str | None, typer.Option(help="The field that tells duplicates.")] = None,
    threshold: Annotated[float | None, typer.Option(help="The similarity that tells duplicates.")] = None,
    batch: Annotated[int, typer.Option(help="Items of one transaction.")] = 10_000,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Store items: new keys are added, stored ones replaced.

    Every record is an item: its key, the collection's fields, and all other columns as attributes.
    """
    from dataclasses import asdict

    from simindex.cli.files import open_for_writing
    from simindex.cli.output import facts, print_json
    from simindex.workflows.io import open_rows

    with open_for_writing(file) as db:
        target = db[collection]
        rows = open_rows(inputs, format, key, target.schema.key == "int", on_error == "skip")
        report = target.put_many(
            rows, batch=batch, on_error="raise" if on_error == "fail" else "skip", on_duplicate=on_duplicate,
            field=field, threshold=threshold,
        )  # fmt: skip
    rejects = [asdict(reject) for reject in rows.rejects] + [reject._asdict() for reject in report.rejects]
    found = {
        "inserted": report.inserted,
        "replaced": report.replaced,
        "unchanged": report.unchanged,
        "skipped": report.skipped,
        "empty": report.empty,
        "shortened": report.shortened,
        "duplicates": [duplicate._asdict() for duplicate in report.duplicates],
        "rejects": rejects,
    }
    if as_json:
        print_json(found)
    elif not quiet:
        facts(
            ((name, f"{n if isinstance(n, int) else len(n):,}") for name, n in found.items()), to_stderr=True
        )
