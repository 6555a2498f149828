"""simindex explain: what a search would do and promise."""

from dataclasses import asdict
from typing import Annotated

import typer

from simindex.cli.commands.search import Accept, Plan, search_options


def explain(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file.")],
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")],
    field: Annotated[str | None, typer.Option(help="The field to search, if there are several.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Least similarity.", show_default="the field's")
    ] = None,
    k: Annotated[int | None, typer.Option(help="At most so many hits, the best.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Miss nothing.")] = False,
    plan: Annotated[Plan | None, typer.Option(help="Force a plan.")] = None,
    budget: Annotated[int | None, typer.Option(help="Most candidates compared.")] = None,
    accept: Annotated[Accept | None, typer.Option(help="Which estimates count as hits.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Print the plan, the expected recall and the cost of a search, without a search."""
    import simindex
    from simindex.cli.output import print_json

    with simindex.open(file, mode="r") as db:
        source = db[collection]
        name = field or source.schema.only_field()
        found = source.explain(field=name, **search_options(threshold, k, exact, plan, budget, accept))
    if as_json:
        print_json(asdict(found))
    else:
        print(found)
