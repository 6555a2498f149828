"""The set kernels under the address and undefined-behaviour sanitizers, fed with damaged bytes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from simindex import kernels

HERE = Path(__file__).parent
HEADERS = HERE.parents[1] / "simindex" / "kernels" / "csrc"


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory) -> Path:
    """The fuzzer, compiled; skips where there is no compiler with sanitizers."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    program = tmp_path_factory.mktemp("fuzz") / "sets_fuzz"
    flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    probe = subprocess.run(
        [compiler, *flags, "-x", "c", "-", "-o", str(program)],
        input="int main(void) { return 0; }",
        text=True,
        capture_output=True,
    )
    if probe.returncode or subprocess.run([str(program)], capture_output=True).returncode:
        pytest.skip("this compiler's sanitizers do not run here")
    built = subprocess.run(
        [
            compiler,
            *flags,
            "-Wall",
            "-Wextra",
            "-I",
            str(HEADERS),
            str(HERE / "sets_fuzz.c"),
            "-o",
            str(program),
        ],
        text=True,
        capture_output=True,
    )
    assert built.returncode == 0, built.stderr
    return program


@pytest.mark.parametrize("level", range(len(kernels.dispatch.available())))
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_damaged_sets_are_never_read_outside_their_bytes(fuzzer, level, seed) -> None:
    rounds = 8_000 if seed == 1 else 500_000
    done = subprocess.run([str(fuzzer), str(rounds), str(seed), str(level)], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
