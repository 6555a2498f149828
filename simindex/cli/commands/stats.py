"""simindex stats: what is in a file."""

from dataclasses import asdict
from typing import Annotated

import typer


def stats(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Print collections, items, bytes by kind, and readers that keep space from being used again."""
    import simindex
    from simindex.cli.output import print_json

    with simindex.open(file, mode="r") as db:
        found = db.stats()
    if as_json:
        print_json(asdict(found) | {"items": found.items, "empty": found.empty, "shortened": found.shortened})
    else:
        print(found)
