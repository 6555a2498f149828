"""Invented tokens, and the truth about sets of them."""


def tok(first: int, stop: int) -> list[str]:
    """Return the tokens first..stop-1."""
    return [f"w{i:07}" for i in range(first, stop)]


def words(first: int, stop: int) -> str:
    """Return the tokens first..stop-1 as one text."""
    return " ".join(tok(first, stop))


def jaccard(a: set, b: set) -> float:
    return len(a & b) / len(a | b)
