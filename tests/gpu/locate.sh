# shellcheck shell=bash disable=SC2034  # its words are for who sources it
# Finds CUDA and NCCL in the usual places, for run.sh and syntax.sh (sourced). Sets arrays and words, empty where nothing is:
#   cuda_include nccl_include   folders with cuda_runtime.h and nccl.h
#   cudart nccl                 the libraries' files
# Order: CUDA_HOME, NCCL_HOME, the folder of nvcc, /usr/local/cuda, /usr/local, /usr, Python's nvidia-* packages; libraries also
# from the dynamic linker's cache.

locate_roots() {
  local nvcc site
  printf '%s\n' "${NCCL_HOME:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}"
  if nvcc=$(command -v nvcc); then dirname "$(dirname "$(readlink -f "$nvcc")")"; fi
  printf '%s\n' /usr/local/cuda /usr/local /usr
  if command -v python3 > /dev/null; then
    python3 -c 'import sys; print("\n".join(p for p in sys.path if p))' | while read -r site; do
      for root in "$site"/nvidia/*/; do [ -d "$root" ] && printf '%s\n' "${root%/}"; done
    done
  fi
}

# first FILE...: prints the first that exists.
first() {
  local file
  for file in "$@"; do
    if [ -e "$file" ]; then printf '%s\n' "$file"; return; fi
  done
}

locate() {
  local root headers=() cudarts=() nccls=() runtime=()
  while read -r root; do
    [ -n "$root" ] || continue
    headers+=("$root/include/nccl.h")
    runtime+=("$root/include/cuda_runtime.h")
    cudarts+=("$root"/lib64/libcudart.so* "$root"/lib/libcudart.so* "$root"/lib/*-linux-gnu/libcudart.so*)
    nccls+=("$root"/lib64/libnccl.so* "$root"/lib/libnccl.so* "$root"/lib/*-linux-gnu/libnccl.so*)
  done < <(locate_roots)
  cached() { { ldconfig -p || /sbin/ldconfig -p; } 2> /dev/null | awk -v name="$1" 'index($1, name) == 1 { print $NF }'; }
  nccl_include=$(first "${headers[@]}")
  cuda_include=$(first "${runtime[@]}")
  nccl_include=${nccl_include%/nccl.h}
  cuda_include=${cuda_include%/cuda_runtime.h}
  # shellcheck disable=SC2046  # one path a line, none of them with blanks
  cudart=$(first "${cudarts[@]}" $(cached libcudart.so))
  # shellcheck disable=SC2046
  nccl=$(first "${nccls[@]}" $(cached libnccl.so))
}
