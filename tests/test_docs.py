"""Documents are complete: every command in the reference, every public name with a docstring."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import simindex
from simindex.cli.main import VERBS

ROOT = Path(__file__).parent.parent
PACKAGES = ["api", "index", "store", "sketch", "lsh", "features", "workflows", "admin"]
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(simindex.__path__, "simindex.")
    if not info.name.split(".")[-1].startswith("_")
)


def test_the_command_reference_is_current() -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "cli_reference.py", "--check"], check=True)


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_is_in_the_reference_with_its_options(verb: str) -> None:
    text = (ROOT / "simindex" / "cli" / "REFERENCE.md").read_text(encoding="utf-8")
    part = text.partition(f"## simindex {verb}\n")[2].partition("\n## ")[0]
    assert part, f"simindex {verb} is not in REFERENCE.md"
    function = getattr(importlib.import_module(f"simindex.cli.commands.{VERBS[verb]}"), VERBS[verb])
    assert inspect.getdoc(function), f"simindex {verb} has no description"
    assert "as_json" in inspect.signature(function).parameters, f"simindex {verb} prints, but knows no --json"
    assert "--json" in part


@pytest.mark.parametrize("name", simindex.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    thing = getattr(simindex, name)
    if name.startswith("__"):
        return
    assert inspect.getdoc(thing), f"simindex.{name} has no docstring"
    if inspect.isclass(thing):
        for method, found in inspect.getmembers(thing, inspect.isroutine):
            is_ours = str(getattr(found, "__module__", "")).startswith("simindex")
            if is_ours and not method.startswith("_"):
                assert inspect.getdoc(found), f"simindex.{name}.{method} has no docstring"


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_appears_in_the_architecture(package: str) -> None:
    assert f"`{package}`" in (ROOT / "simindex" / "ARCHITECTURE.md").read_text(encoding="utf-8")


def members(name: str) -> list[Any]:
    module = importlib.import_module(name)
    return [getattr(module, public) for public in getattr(module, "__all__", [])]


def test_names_that_packages_export_have_docstrings() -> None:
    packages = [name for name in MODULES if hasattr(importlib.import_module(name), "__all__")]
    bare = [
        f"{name}: {thing.__name__}"
        for name in packages
        for thing in members(name)
        if (inspect.isclass(thing) or inspect.isroutine(thing)) and not inspect.getdoc(thing)
    ]
    assert not bare
