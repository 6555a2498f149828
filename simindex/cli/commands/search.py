"""simindex search: what is like this?"""

from typing import Annotated, Any, Literal

import typer

Plan = Literal["scan", "buckets"]
Accept = Literal["likely", "possible"]


def search(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file.")],
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")],
    value: Annotated[
        str,
        typer.Argument(metavar="VALUE", help="A text, tokens apart by blanks, or '-' for standard input."),
    ],
    field: Annotated[str | None, typer.Option(help="The field to search, if there are several.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Least similarity.", show_default="the field's")
    ] = None,
    k: Annotated[int | None, typer.Option(help="At most so many hits, the best.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Miss nothing.")] = False,
    plan: Annotated[Plan | None, typer.Option(help="Force a plan.")] = None,
    budget: Annotated[int | None, typer.Option(help="Most candidates compared.")] = None,
    accept: Annotated[Accept | None, typer.Option(help="Which estimates count as hits.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with all hits.")] = False,
) -> None:
    """Print the items most like a value: key, score, and where the score is estimated its interval."""
    import simindex
    from simindex.cli.output import print_json, table

    with simindex.open(file, mode="r") as db:
        source = db[collection]
        name = field or source.schema.only_field()
        asked = search_options(threshold, k, exact, plan, budget, accept)
        hits = source.search(**{name: parse_query(source.schema.field(name).kind, value)}, **asked)
    if as_json:
        found = [hit._asdict() for hit in hits]
        print_json({"plan": hits.plan, "truncated": hits.truncated, "tie_cut": hits.tie_cut, "hits": found})
        return
    shown = [
        (
            hit.key,
            f"{hit.score:.4f}",
            "exact" if hit.exact else f"{hit.low:.3f} to {hit.high:.3f}",
            hit.attributes,
        )
        for hit in hits
    ]
    table(("key", "score", "interval", "attributes"), shown)


def search_options(
    threshold: float | None,
    k: int | None,
    exact: bool,
    plan: str | None,
    budget: int | None,
    accept: str | None,
) -> dict[str, Any]:
    """Return the options that were given, as the library takes them."""
    named = {"threshold": threshold, "k": k, "plan": plan, "budget": budget, "accept": accept}
    return {name: value for name, value in named.items() if value is not None} | (
        {"exact": True} if exact else {}
    )


def parse_query(kind: str, text: str) -> Any:
    """Return the value to search: the text itself, or for tokens its words, or a JSON array."""
    import json
    import sys

    if text == "-":
        text = sys.stdin.read()
    if kind != "tokens":
        return text
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError as error:
            raise typer.BadParameter(f"the value is not a JSON array: {error}") from None
    return text.split()
