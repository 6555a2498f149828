#!/usr/bin/env bash
# Ours beside the peers, in one environment of its own:  benchmarks/compare/run.sh [LANE...] [--data DIR] [--items N] [--name NAME]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=${SIMINDEX_COMPARE_VENV:-$here/.venv}
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r "$here/requirements.txt"
fi
"$venv/bin/pip" install -q "$here/../.."
export RAYON_NUM_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
cd "$here" && exec "$venv/bin/python" run.py "$@"
