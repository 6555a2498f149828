"""What the store must know of a schema."""

from simindex.index.schema import Schema
from simindex.store import CollectionLayout, FieldLayout


def layout_of(schema: Schema) -> CollectionLayout:
    """Return the layout of a collection: field numbers, signature widths, bands, whether originals are kept.

    The same object for the same schema object: the store compares layouts by identity first.
    """
    known: CollectionLayout | None = schema.__dict__.get("_layout")
    if known is None:
        known = schema.__dict__["_layout"] = _made(schema)
    return known


def _made(schema: Schema) -> CollectionLayout:
    return CollectionLayout(
        tuple(
            FieldLayout(schema.numbers[name], field.family.width, field.bands, field.is_exact)
            for name, field in schema.fields.items()
        )
    )
