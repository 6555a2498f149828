"""What the figures were taken on: processor, memory, versions."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def describe(packages: tuple[str, ...] = ("simindex", "numpy", "lmdb")) -> dict[str, Any]:
    """Return processor, cores, memory, Python and package versions as plain data."""
    cpu = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        memory = Path("/proc/meminfo").read_text().split()[1] + " kB"
    except (OSError, StopIteration):
        memory = "unknown"
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {"cpu": cpu, "memory": memory, "python": platform.python_version(), "packages": versions}
