"""simindex create: a collection in a new or existing file."""

from typing import Annotated, Any, Literal

import typer

KeyKind = Literal["str", "bytes", "int"]


def create(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file; made if there is none.")],
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")],
    field: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=KIND[,SETTING=VALUE...]",
            help="A field: body=text,threshold=0.8,shingle=words:3 or tags=tokens,threshold=0.5,bands=16x8.",
        ),
    ],
    key: Annotated[KeyKind, typer.Option(help="Type of the keys.")] = "str",
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Fine if it is there with these settings.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the schema as JSON.")] = False,
) -> None:
    """Make a collection and print what to expect of it.

    Settings of a field are those of simindex.text() and simindex.tokens(): threshold, shingle, normalize,
    casefold, k, slots, bands (as 16x8), recall, verify, family, keep, source, force.
    """
    import simindex
    from simindex.cli.output import print_json

    fields = dict(map(parse_field, field))
    with simindex.open(file) as db:
        made = db.create_collection(collection, fields, key=key, exist_ok=exist_ok)
        if as_json:
            print_json(made.schema.to_dict())
        else:
            print(made.describe())


def parse_field(text: str) -> tuple[str, Any]:
    """Return (name, field) of "name=kind,setting=value,...". Raises a usage error, SchemaError for bad
    settings."""
    from simindex.index.field import text as text_field
    from simindex.index.field import tokens as tokens_field

    head, *settings = text.split(",")
    name, _, kind = head.partition("=")
    makers = {"text": text_field, "tokens": tokens_field}
    if not name or kind not in makers:
        raise typer.BadParameter(f"--field {text!r}: give NAME=text or NAME=tokens, then settings")
    values: dict[str, Any] = {}
    for setting in settings:
        option, equals, value = setting.partition("=")
        if not equals:
            raise typer.BadParameter(f"--field {text!r}: {setting!r} is not SETTING=VALUE")
        values[option.strip()] = parse_value(option.strip(), value.strip())
    return name, makers[kind](**values)


def parse_value(option: str, text: str) -> Any:
    """Return a setting's value: true and false, numbers, 16x8 for bands, else the text."""
    if text in ("true", "false"):
        return text == "true"
    if option == "bands":
        parts = text.split("x")
        if len(parts) != 2 or not all(part.isdecimal() for part in parts):
            raise typer.BadParameter(f"bands is {text!r}: give two numbers, such as 16x8")
        return int(parts[0]), int(parts[1])
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
