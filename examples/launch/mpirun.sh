#!/usr/bin/env bash
# Open MPI passes the environment of the command on with -x; `ringscope run` stands in front of each rank and sets the rest itself.
set -euo pipefail
export RINGSCOPE_DIR=/shared/traces
exec mpirun -np "${RANKS:-8}" -x RINGSCOPE_DIR /opt/ringscope/ringscope run -- python train.py "$@"
