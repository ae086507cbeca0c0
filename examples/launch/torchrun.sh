#!/usr/bin/env bash
# One `ringscope run` a node: torchrun and its workers inherit what it sets.
#   RINGSCOPE_DIR   a folder that all nodes see; a stalled rank makes the ranks of all nodes write there
#   stall time      well below the watchdog's timeout (10 minutes by default), which ends the processes otherwise
set -euo pipefail
export RINGSCOPE_DIR=/shared/traces
export RINGSCOPE_STALL_SECONDS=60
exec /opt/ringscope/ringscope run -- \
  torchrun --nnodes="${NNODES:-1}" --nproc-per-node="${GPUS:-8}" --rdzv-backend=c10d --rdzv-endpoint="${HEAD:-localhost}:29500" train.py "$@"
