"""simindex check: is everything in the file as it was written?"""

from dataclasses import asdict
from typing import Annotated

import typer


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The simindex file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Recompute every checksum, posting and counter, and print what is wrong. Exit code 1 if anything is."""
    import simindex
    from simindex.cli.main import FINDINGS, say
    from simindex.cli.output import print_json

    with simindex.open(file, mode="r") as db:
        findings = db.check()
    if as_json:
        print_json({"file": file, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            print(finding)
        say(f"{file}: {len(findings)} findings" if findings else f"{file} is sound")
    if findings:
        raise typer.Exit(FINDINGS)
