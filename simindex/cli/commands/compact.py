"""simindex compact: give back the space of what was replaced and deleted."""

from dataclasses import asdict
from typing import Annotated

import typer


def compact(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the sizes as JSON.")] = False,
) -> None:
    """Write a checked copy without dead rows and put it in the file's place. Needs room for both."""
    from simindex.cli.files import open_for_writing
    from simindex.cli.output import print_json

    with open_for_writing(file) as db:
        done = db.compact()
    if as_json:
        print_json(asdict(done))
    else:
        print(f"{file}: {done.items:,} items, {done.before:,} bytes before, {done.after:,} after")
