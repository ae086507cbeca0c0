#!/usr/bin/env bash
# A training job that hangs, and its diagnosis. Runs real processes on the stand-ins for CUDA and NCCL (tests/sim), no GPU needed, with
# libringscope.so loaded as NCCL loads it; then asks `ringscope diagnose` who did it, and shows what the truth was.
#
#   examples/demo.sh                     installs what is missing (Debian), builds into build/release, runs, diagnoses
#   examples/demo.sh --list              what else can go wrong
#   examples/demo.sh --scenario NAME     one of those
#   examples/demo.sh CAPTURE             plays a folder of tests/replay/captures instead: recorded from real NCCL
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
usage() { sed -n '5,8s/^# *//p' examples/demo.sh; }
refuse() { echo "demo: $*" >&2; exit 64; }
scenario=lane_dies_then_fallback
capture=
most=1
[ "${1:-}" != --scenario ] || most=2
[ $# -le $most ] || refuse "too much: $* (--help says what there is)"
case ${1-none} in
  none) ;;
  '') refuse "an empty word is no capture; --list names scenarios" ;;
  --list)
    for file in tests/sim/scenarios/*.json; do
      printf '%-28s %s\n' "$(basename "$file" .json)" "$(sed -n 's/^ *"about": "\(.*\)",$/\1/p' "$file")"
    done
    exit 0
    ;;
  --scenario)
    scenario=${2:-}
    case $scenario in
      '') refuse "--scenario needs a name; --list names them" ;;
      */*) refuse "'$scenario' is a path; --scenario takes a name of --list" ;;
    esac
    [ -f "tests/sim/scenarios/$scenario.json" ] || refuse "no scenario '$scenario'; --list names them"
    ;;
  -h|--help) usage; exit 0 ;;
  -*) echo "demo: unknown option $1" >&2; usage >&2; exit 64 ;;
  *)
    capture=$1
    # What `replay` reads first.
    if [ ! -f "$capture/expected.json" ]; then
      echo "demo: '$capture' is no folder of a capture (expected.json, ...). Folders of tests/replay/captures are:" \
        "$(cd tests/replay/captures && echo *)" >&2
      exit 64
    fi
    ;;
esac

cmake/install_packages.sh
build=build/release
log=$build/build.log
mkdir -p "$build"
echo "demo: building into $build (log: $log)"
if ! { cmake --preset release && cmake --build "$build" -j "$(nproc)" --target libringscope ringscope_tool sim_scenario replay; } \
    > "$log" 2>&1; then
  tail -n 60 "$log" >&2
  echo "demo: the build failed (whole log: $log)" >&2
  exit 1
fi

out=build/demo
rm -rf "$out"
if [ -n "$capture" ]; then
  inputs="$out"
  echo "demo: playing $capture; each recorder notices after RINGSCOPE_STALL_SECONDS=2"
  RINGSCOPE_STALL_SECONDS=2 "$build/replay" "$capture" --out "$out" --speed 20 > "$build/replay.log" 2>&1 ||
    { cat "$build/replay.log" >&2; echo "demo: the replay failed" >&2; exit 1; }
else
  about=$(sed -n 's/^ *"about": "\(.*\)",$/\1/p' "tests/sim/scenarios/$scenario.json")
  echo "demo: running the scenario $scenario: $about"
  echo "demo: each recorder notices a stall after RINGSCOPE_STALL_SECONDS=2, five times that before a communicator's first operation ends"
  python3 -B tests/sim/run_scenario.py "$build" "$scenario" --out "$out" --watch ||
    { echo "demo: the job could not be run: the line above says why" >&2; exit 1; }
  # What is there of: records, the program's and NCCL's output, kernel logs, nvidia-smi.
  inputs=
  for folder in traces flight logs kernel nvidia-smi; do
    [ -d "$out/$folder" ] && inputs="$inputs $out/$folder"
  done
  inputs=${inputs# }
fi

echo "demo: \$ ringscope diagnose $inputs"
echo
status=0
# shellcheck disable=SC2086  # several folders
"$build/ringscope" diagnose $inputs || status=$?
echo
case $status in
  0|1|2) ;;
  *) echo "demo: diagnose failed with exit status $status" >&2; exit 1 ;;
esac
if [ -z "$capture" ]; then
  faults=$(sed -n 's/^ *"faults": "\(.*\)",$/\1/p' "tests/sim/scenarios/$scenario.json")
  echo "demo: what was done to the job: ${faults:-nothing} (tests/sim/nccl/faults.h)"
fi
record=$(find "$out" -name '*.trace' | sort | head -n 1)
cat <<END
demo: exit status $status (0 nothing wrong, 1 a fault found, 2 undetermined). Now try:
  $build/ringscope diagnose --format=json $inputs
  $build/ringscope diagnose --html=report.html $inputs      # the same for a browser
  $build/ringscope show ${record:-FILE}
  $build/ringscope env
  examples/demo.sh --list
  NCCL_PROFILER_PLUGIN=$PWD/$build/libringscope.so in front of your own job's command
END
