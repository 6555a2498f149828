"""simindex demo: the main job on the corpus that ships with the package."""

from typing import Annotated, Any

import typer


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Deduplicate the sample corpus (licences, German laws, Chinese poems, speeches) and show what was found.

    Works in a temporary folder; nothing is left behind.
    """
    import json
    import tempfile
    from pathlib import Path

    import simindex
    from simindex.cli.output import facts, print_json
    from simindex.samples import CORPUS
    from simindex.workflows.dedup import Options, dedup

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        index = str(folder / "items.simdb")
        clusters = folder / "clusters.jsonl"
        summary = dedup(
            Options(
                inputs=(str(CORPUS),), output=str(folder / "survivors.jsonl"), key="id", index=index,
                clusters=str(clusters),
            )
        )  # fmt: skip
        with clusters.open(encoding="utf-8") as lines:
            members = [json.loads(line) for line in lines]
        shown = examples(members)
        with (folder / "survivors.jsonl").open(encoding="utf-8") as lines:
            text = json.loads(next(lines))["text"]
        with simindex.open(index, mode="r") as db:
            hits = db["items"].search(text=text, k=3)
            findings = db.check()
    if as_json:
        print_json({"summary": summary.to_dict(), "examples": shown, "findings": len(findings)})
        return
    print("simindex dedup over the sample corpus: licences, German laws, Chinese poems, speeches.\n")
    facts(summary.lines())
    print("\nSome clusters (kept item, then its near-duplicates with their exact Jaccard similarity):")
    for example in shown:
        print(f"  {example['kept']}")
        for item, score in example["duplicates"]:
            print(f"    {score:.3f}  {item}")
    print("\nThe same file is a searchable index. Most like the first survivor:")
    for hit in hits:
        print(f"    {hit.score:.3f}  {hit.attributes.get('label')}")
    print(f"\ncheck: {len(findings) or 'no'} findings. Try it: simindex dedup YOURS.jsonl -o OUT.jsonl")


def examples(members: list[dict[str, Any]], count: int = 6, shown: int = 4) -> list[dict[str, Any]]:
    """Return clusters to show, of every set in turn: {"kept": item, "duplicates": [(item, score), ...]}."""
    groups: dict[str, list[tuple[str, float]]] = {}
    for member in members:
        if not member["kept"]:
            groups.setdefault(member["cluster"], []).append((member["item"], member["score"]))
    by_set: dict[str, list[str]] = {}
    for kept, found in groups.items():
        if any(score < 1 for _, score in found):
            by_set.setdefault(kept.partition("/")[0], []).append(kept)
    out: list[dict[str, Any]] = []
    for turn in range(count):
        for names in by_set.values():
            if turn < len(names) and len(out) < count:
                out.append({"kept": names[turn], "duplicates": groups[names[turn]][:shown]})
    return out
