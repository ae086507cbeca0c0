#!/usr/bin/env bash
# The container has a /dev/shm of its own, 64 MiB unless told otherwise, which NCCL needs too and which is gone with the container.
#   --shm-size          room for NCCL's segments and eight flight files of at most 3 MiB
#   -v .../ringscope    the tool and its libraries, read only
#   --cap-add           py-spy's stacks of a hung rank; nothing else needs it
set -euo pipefail
exec docker run --rm --gpus all --shm-size=1g --cap-add=SYS_PTRACE \
  -v /opt/ringscope:/opt/ringscope:ro -v /shared/traces:/shared/traces -e RINGSCOPE_DIR=/shared/traces \
  "${IMAGE:-train:latest}" /opt/ringscope/ringscope run -- python train.py "$@"
