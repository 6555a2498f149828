"""simindex delete: remove items."""

from typing import Annotated

import typer


def delete(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file.")],
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")],
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Keys of items.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Remove items, all in one transaction; keys that are not stored are counted, not an error."""
    from simindex.cli.files import open_for_writing, parse_key
    from simindex.cli.output import print_json

    with open_for_writing(file) as db:
        parsed = [parse_key(db[collection].schema.key, text) for text in keys]
        with db.write() as tx:
            deleted = sum(tx[collection].delete(key) for key in parsed)
    if as_json:
        print_json({"deleted": deleted, "missing": len(keys) - deleted})
    else:
        print(f"{deleted} deleted, {len(keys) - deleted} not there")
