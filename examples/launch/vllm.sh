#!/usr/bin/env bash
# vLLM opens libnccl itself and fetches its functions by dlsym: no preloaded library sees those calls, NCCL's profiler plugin does.
#   NCCL_PROFILER_PLUGIN   inherited by the workers
#   VLLM_NCCL_SO_PATH      left alone: which NCCL is used is vLLM's choice
set -euo pipefail
export NCCL_PROFILER_PLUGIN=/opt/ringscope/libringscope.so
export RINGSCOPE_DIR=/shared/traces
exec vllm serve "${MODEL:?the model to serve}" --tensor-parallel-size "${GPUS:-8}" "$@"
