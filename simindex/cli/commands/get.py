"""simindex get: stored items by key."""

from typing import Annotated

import typer


def get(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file.")],
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")],
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Keys of items.")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines.")] = False,
) -> None:
    """Print items: their keys and attributes. Exit code 3 if one is not stored; the others are printed."""
    import simindex
    from simindex.cli.files import parse_key
    from simindex.cli.main import FAILURE, say
    from simindex.cli.output import facts, print_json

    missing = 0
    with simindex.open(file, mode="r") as db:
        source = db[collection]
        for text in keys:
            key = parse_key(source.schema.key, text)
            found = source.get(key)
            if found is None:
                say(f"{text}: no such key in {collection}")
                missing += 1
            elif as_json:
                print_json({"key": key, **found})
            else:
                facts([("key", text), *((str(name), str(value)) for name, value in found.items())])
    if missing:
        raise typer.Exit(FAILURE)
