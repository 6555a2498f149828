"""The identity record of a store, format 1."""

from simindex.store.meta import Identity


def files() -> dict[str, bytes]:
    """Return the stored form of one identity."""
    identity = Identity(
        created_by="0.1.0",
        page_bytes=4096,
        created=1_790_000_000,
        byte_order="little",
        settings={"a": 1, "ü": [2]},
    )
    return {"identity_1.bin": identity.encode()}
