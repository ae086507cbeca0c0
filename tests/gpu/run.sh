#!/usr/bin/env bash
# Ringscope in real jobs on one real GPU: does `ringscope diagnose` name the right rank, and what does the plugin cost?
#
#   tests/gpu/run.sh                 builds what it needs, runs everything
#   tests/gpu/run.sh --ranks N       ranks of the job, 2 to 4 (default 3), all on the first GPU
#   tests/gpu/run.sh --rounds N      rounds of the comparison with and without the plugin (default 5; 0: leave it out)
#   tests/gpu/run.sh --build DIR     libringscope.so and ringscope are in DIR: build neither
#   tests/gpu/run.sh --no-install    leave the machine's packages alone
#   tests/gpu/run.sh --keep          keep the records also when all is right
#
# Exit status: 0 all right, 1 something wrong, 77 skipped: no GPU or no NCCL here. The last line says so in words.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$(dirname "$here")")
usage() { sed -n '2,/^set/{/^# \{0,1\}/s///p}' "${BASH_SOURCE[0]}"; }
skip() { echo "run.sh: skipped: $*"; exit 77; }
fail() { echo "run.sh: FAILED: $*"; exit 1; }

ranks=3 rounds=5 build="" install=yes keep=no
while [ $# -gt 0 ]; do
  case "$1" in
    --ranks) ranks=${2:?--ranks needs a number}; shift ;;
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --build) build=$(cd "${2:?--build needs a folder}" && pwd); shift ;;
    --no-install) install=no ;;
    --keep) keep=yes ;;
    -h|--help) usage; exit 0 ;;
    *) echo "run.sh: unknown option $1 (try --help)" >&2; exit 64 ;;
  esac
  shift
done
case "$ranks" in [2-4]) ;; *) echo "run.sh: --ranks is 2, 3 or 4" >&2; exit 64 ;; esac
faulty=$((ranks - 1))

# ---- what is here
# shellcheck source=tests/gpu/locate.sh
. "$here/locate.sh"
locate
if [ -z "$nccl" ] || [ -z "$nccl_include" ]; then skip "NCCL (libnccl.so and nccl.h) not found; set NCCL_HOME"; fi
if [ -z "$cudart" ] || [ -z "$cuda_include" ]; then skip "the CUDA runtime (libcudart.so and cuda_runtime.h) not found; set CUDA_HOME"; fi
cxx=${CXX:-$(command -v g++ || command -v clang++ || command -v c++)} || fail "no C++ compiler; set CXX"

work=$(mktemp -d "${TMPDIR:-/tmp}/ringscope-gpu.XXXXXX")
memory=$(mktemp -d -p /dev/shm ringscope-gpu.XXXXXX 2> /dev/null) || { memory=$work/memory; mkdir "$memory"; }
pids=()
stop_all() {
  local pid
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2> /dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2> /dev/null || true; done
  pids=()
}
wrong=()
at_exit() {
  local status=$?
  stop_all
  if [ "$keep" = yes ] || [ "$status" = 1 ]; then
    echo "run.sh: records are kept in $work and $memory"
  else
    rm -rf "$work" "$memory"
  fi
}
trap at_exit EXIT
trap 'exit 130' INT TERM

"$cxx" -std=c++17 -O1 -I"$nccl_include" -I"$cuda_include" "$here/gpu_job.cc" -o "$work/gpu_job" "$nccl" "$cudart" -ldl \
  -Wl,-rpath,"$(dirname "$nccl"):$(dirname "$cudart")" > "$work/compile.log" 2>&1 || {
  cat "$work/compile.log"; fail "gpu_job.cc does not compile with $nccl_include and $cuda_include"; }
"$work/gpu_job" check > "$work/check.log" 2>&1 || {
  status=$?; [ $status = 77 ] && skip "$(tail -n 1 "$work/check.log")"; cat "$work/check.log"; fail "gpu_job check"; }
echo "run.sh: $(tail -n 1 "$work/check.log"), $ranks ranks on one GPU"

if [ -z "$build" ]; then
  build=$root/build/gpu
  if [ "$install" = yes ]; then "$root/cmake/install_packages.sh"; fi
  mkdir -p "$build"
  echo "run.sh: building Ringscope (log: $build/build.log)"
  { cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRINGSCOPE_TESTS=OFF &&
    cmake --build "$build" --target libringscope ringscope_tool; } > "$build/build.log" 2>&1 || {
    tail -n 30 "$build/build.log"; fail "Ringscope does not build"; }
fi
plugin=$build/libringscope.so tool=$build/ringscope
if [ ! -e "$plugin" ] || [ ! -x "$tool" ]; then fail "no libringscope.so or ringscope in $build"; fi

# ---- running a job
# Two ranks of one NCCL host on one GPU are refused; hosts of their own, joined by sockets, are not. So the ranks pretend.
export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_IB_DISABLE=1 NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo NCCL_NVLS_ENABLE=0 \
  NCCL_MNNVL_ENABLE=0 NCCL_DEBUG=WARN
unset NCCL_PROFILER_PLUGIN NCCL_COMM_ID NCCL_HOSTID NCCL_TOPO_FILE
export RINGSCOPE=1 RINGSCOPE_STALL_SECONDS=5
unset RINGSCOPE_EVENTS RINGSCOPE_HOST RINGSCOPE_BOOT_ID RINGSCOPE_TRACES

# start MODE NAME RANKS [VAR=VALUE ...]: one process a rank, in the background; output in $work/NAME.
start() {
  local mode=$1 name=$2 count=$3 rank; shift 3
  mkdir -p "$work/$name"
  pids=()
  for ((rank = 0; rank < count; ++rank)); do
    env "$@" RANK="$rank" WORLD_SIZE="$count" NCCL_HOSTID="pretended-$rank" RINGSCOPE_JOB="$name" \
      RINGSCOPE_DIR="$work/$name/traces" RINGSCOPE_FLIGHT_DIR="$memory/$name" \
      "$work/gpu_job" "$mode" "$rank" "$count" "$work/$name/id" "$faulty" > "$work/$name/rank$rank.log" 2>&1 &
    pids+=($!)
  done
}

# finish NAME: waits for all ranks (they bound themselves); false when one failed.
finish() {
  local pid good=yes
  for pid in "${pids[@]}"; do wait "$pid" || good=no; done
  pids=()
  [ $good = yes ] || { echo "run.sh: a rank of '$1' failed:"; tail -n 5 "$work/$1"/rank*.log; return 1; }
}

# wait_for_stall NAME: until all ranks but one have written the trace of a stall, or one has ended, or two minutes.
wait_for_stall() {
  local pid tries
  for ((tries = 0; tries < 240; ++tries)); do
    [ "$(find "$work/$1/traces" -name '*-stall.trace' 2> /dev/null | wc -l)" -ge $((ranks - 1)) ] && { sleep 2; return 0; }
    for pid in "${pids[@]}"; do kill -0 "$pid" 2> /dev/null || return 0; done
    sleep 0.5
  done
}

# judge NAME WHEN KIND RANK: diagnoses the records, compares.
judge() {
  local name=$1 when=$2 expected="$3${4:+ rank $4}" text="$work/$1/diagnosis-${2// /-}.txt" kind who folders=() folder found
  for folder in "$work/$name/traces" "$memory/$name"; do if [ -e "$folder" ]; then folders+=("$folder"); fi; done
  "$tool" diagnose --color=never "${folders[@]}" > "$text" 2>&1 || true
  kind=$(sed -n 's/^what *\([a-z0-9_]*\),.*/\1/p' "$text" | head -n 1)
  who=$(sed -n 's/^who *\(rank [0-9]*\).*/\1/p' "$text" | head -n 1)
  found=${kind:+$kind${who:+ $who}}
  [ -n "$found" ] || { if grep -q '^HEALTHY ' "$text"; then found=none; else found="no diagnosis"; fi; }
  if [ "$found" = "$expected" ]; then
    echo "run.sh: ok: $name, $when: $found"
  else
    echo "run.sh: WRONG: $name, $when: $found instead of $expected; its text:"
    sed 's/^/    /' "$text" | head -n 40
    echo "run.sh: and the last words of the ranks:"
    tail -q -n 3 "$work/$name"/rank*.log | sed 's/^/    /'
    wrong+=("$name, $when")
  fi
}

# hang MODE KIND: the job hangs by the fault of one rank; judged while it lives and after it was killed.
hang() {
  start "$1" "$1" "$ranks" NCCL_PROFILER_PLUGIN="$plugin"
  wait_for_stall "$1"
  judge "$1" "while it hangs" "$2" "$faulty"
  stop_all
  judge "$1" "after a kill" "$2" "$faulty"
}

start healthy healthy "$ranks" NCCL_PROFILER_PLUGIN="$plugin"
if finish healthy; then judge healthy "after its end" none ""; else wrong+=("healthy"); fi
hang missing missing_rank
hang stalled gpu_stalled

# ---- what the plugin costs: with and without in turn, so that what changes on the machine meets both
# best WORD FILE: the smallest of what the runs printed after WORD: whatever else runs here only adds.
best() { sed -n "s/^$1 //p" "$2" | sort -n | head -n 1; }
for ((round = 1; round <= rounds; ++round)); do
  for with in with without; do
    plugin_or_none=none
    [ $with = without ] || plugin_or_none=$plugin
    start timing "$with-$round" 2 NCCL_PROFILER_PLUGIN="$plugin_or_none"
    if finish "$with-$round"; then cat "$work/$with-$round/rank0.log" >> "$work/$with.txt"; else wrong+=("timing"); fi
  done
done
if [ "$rounds" -gt 0 ] && [ -s "$work/with.txt" ] && [ -s "$work/without.txt" ]; then
  for word in step call; do
    awk -v word="$word" -v a="$(best $word "$work/with.txt")" -v b="$(best $word "$work/without.txt")" -v n="$rounds" 'BEGIN {
      what = word == "step" ? "an all-reduce, from the call to its end" : "the call that enqueues it"
      printf "run.sh: %s: with the plugin %.1f us, without %.1f us, ratio %.3f (best of %d runs each, in turn)\n", what, a / 1000, b / 1000, a / b, n }'
  done
fi

[ ${#wrong[@]} -eq 0 ] || fail "$(printf '%s; ' "${wrong[@]}")"
echo "run.sh: all right"
