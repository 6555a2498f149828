"""Write golden files: bytes that tests compare with and never remake.

usage: make_golden.py             writes what is missing, names what differs
       make_golden.py NAME...     rewrites these: only with a new version number and a reason in the commit

Every tools/golden/<topic>.py has `files() -> dict[str, bytes]`: file name under tests/golden and contents.
"""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def golden_files() -> dict[str, bytes]:
    """Return the name and contents of every golden file as the code makes them now."""
    found: dict[str, bytes] = {}
    for path in sorted((ROOT / "tools" / "golden").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"golden_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, data in module.files().items():
            if name in found:
                raise ValueError(f"two topics make the golden file {name}")
            found[name] = data
    return found


def main(names: list[str]) -> int:
    made = golden_files()
    unknown = sorted(set(names) - set(made))
    if unknown:
        print(f"no topic makes {', '.join(unknown)}", file=sys.stderr)
        return 2
    differ = 0
    for name, data in made.items():
        path = ROOT / "tests" / "golden" / name
        if name in names or not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"wrote {name}: {len(data)} bytes")
        elif path.read_bytes() != data:
            differ += 1
            print(f"{name} differs from what the code makes now")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
