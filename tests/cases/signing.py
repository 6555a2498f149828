"""Signatures of 1,000 fixed documents, for other processes to repeat; run, it prints their digest."""

import hashlib

import simindex
from simindex import features


def digest(_: object = None) -> str:
    """Return the SHA-256 of all signatures of 1,000 documents and sets, by both families."""
    texts = [
        " ".join(f"w{i * j % 997:04}" for j in range(i % 60 + 1)) + " Ünïcode 東京" for i in range(1_000)
    ]
    sets = [[f"t{i * j % 991}" for j in range(i % 60 + 1)] for i in range(1_000)]
    found = hashlib.sha256()
    for family in ("fastsim/1", "minhash/1"):
        text, tokens = (make(threshold=0.8, family=family) for make in (simindex.text, simindex.tokens))
        for field, made in (
            (text, features.text_features(texts, text.text)),
            (tokens, features.set_features(sets)),
        ):
            signed = field.family.sign(made)
            found.update(signed.tobytes())
            found.update(field.scheme.keys(signed).astype("<u8").tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    print(digest())
