#!/usr/bin/env bash
# A job that hangs, and its diagnosis. Plays a captured hang of four ranks (recorded from real NCCL: rank 2 never calls
# the eleventh all-reduce; the capture's name counts from 0) through the recorder, then asks `ringscope diagnose` who did it.
#
#   examples/demo.sh             installs what is missing (Debian), builds into build/release, plays, diagnoses
#   examples/demo.sh CAPTURE     another folder of tests/replay/captures
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
capture=${1:-tests/replay/captures/b1_rank2_skips_op10}
if [ ! -d "$capture" ]; then
  echo "demo: no folder $capture. There are: $(cd tests/replay/captures && echo ./*)" >&2
  exit 66
fi

cmake/install_packages.sh
build=build/release
log=$build/build.log
mkdir -p "$build"
echo "demo: building into $build (log: $log)"
if ! { cmake --preset release && cmake --build "$build" -j "$(nproc)" --target libringscope ringscope_tool replay; } \
    > "$log" 2>&1; then
  tail -n 60 "$log" >&2
  echo "demo: the build failed (whole log: $log)" >&2
  exit 1
fi

out=build/demo
rm -rf "$out"
echo "demo: playing $capture; the ranks hang, each recorder notices after RINGSCOPE_STALL_SECONDS=2"
if ! RINGSCOPE_STALL_SECONDS=2 "$build/replay" "$capture" --out "$out" --speed 20 > "$build/replay.log" 2>&1; then
  cat "$build/replay.log" >&2
  echo "demo: the replay failed" >&2
  exit 1
fi

echo "demo: \$ ringscope diagnose $out"
echo
status=0
"$build/ringscope" diagnose "$out" || status=$?
echo
case $status in
  0|1|2) ;;
  *) echo "demo: diagnose failed with exit status $status" >&2; exit 1 ;;
esac
record=$(find "$out" -name '*.trace' | sort | head -n 1)
cat <<END
demo: exit status $status (0 nothing wrong, 1 a fault found, 2 undetermined). Now try:
  $build/ringscope diagnose --format=json $out
  $build/ringscope show ${record:-FILE}
  $build/ringscope env
  NCCL_PROFILER_PLUGIN=$PWD/$build/libringscope.so in front of your own job's command
END
