#!/usr/bin/env bash
# What of tests/gpu can be checked without a GPU: the scripts parse, shellcheck finds nothing, and gpu_job.cc compiles against
# the CUDA and NCCL headers that are here. Exit status: 0 all checked, 1 a fault, 77 no fault, but something could not be checked.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
status=0 skipped=()
for script in run.sh locate.sh syntax.sh; do bash -n "$script" || status=1; done
if command -v shellcheck > /dev/null; then
  shellcheck -x -P ../.. run.sh locate.sh syntax.sh || status=1
else
  skipped+=("shellcheck (not installed)")
fi

# shellcheck source=tests/gpu/locate.sh
. ./locate.sh
locate
if [ -n "$cuda_include" ] && [ -n "$nccl_include" ]; then
  "${CXX:-c++}" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -isystem "$nccl_include" -isystem "$cuda_include" gpu_job.cc || status=1
else
  skipped+=("gpu_job.cc (no cuda_runtime.h or no nccl.h)")
fi

if [ $status = 0 ] && [ ${#skipped[@]} -gt 0 ]; then
  echo "syntax.sh: not checked: $(printf '%s; ' "${skipped[@]}")"
  exit 77
fi
exit $status
