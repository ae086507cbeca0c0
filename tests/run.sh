#!/usr/bin/env bash
# The project's tests. Installs what is missing, builds, runs the CI tier (at most 15 minutes on 2 cores after the build).
#
#   tests/run.sh                 the CI tier, release build
#   tests/run.sh --all           that, the long tests, everything short again under asan, tsan and ubsan, fuzzing, and the
#                                library's builds for Debian 11 (glibc 2.17) and aarch64 (release/)
#   tests/run.sh --preset asan   the CI tier in another build (CMakePresets.json)
#   tests/run.sh --no-install    leave the machine's packages alone
#   tests/run.sh -R REGEX        only tests whose name matches (goes to ctest)
#
# Exit status 0 only if every test passed. The last line says so in words.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
usage() { sed -n '2,/^set/{/^# \{0,1\}/s///p}' "${BASH_SOURCE[0]}"; }

all=no install=yes presets=(release) only=()
while [ $# -gt 0 ]; do
  case "$1" in
    --all) all=yes ;;
    --no-install) install=no ;;
    --preset) presets=("${2:?--preset needs a name}"); shift ;;
    -R) only=(-R "${2:?-R needs a regular expression}"); shift ;;
    -h|--help) usage; exit 0 ;;
    *) echo "run.sh: unknown option $1 (try --help)" >&2; exit 64 ;;
  esac
  shift
done
[ "$all" = no ] || presets=(release asan tsan ubsan)
jobs=$(nproc)

if [ "$install" = yes ]; then
  if [ "$all" = yes ]; then cmake/install_packages.sh --long; else cmake/install_packages.sh; fi
fi

# build PRESET: quiet; the log is shown when it fails.
build() {
  local log=build/$1/build.log
  mkdir -p "build/$1"
  echo "run.sh: building preset $1 (log: $log)"
  if ! { cmake --preset "$1" && cmake --build "build/$1" -j "$jobs"; } > "$log" 2>&1; then
    grep -E -A12 'error|Error|FAILED' "$log" | tail -n 80 >&2 || tail -n 80 "$log" >&2
    echo "run.sh: preset $1 does not build (whole log: $log)" >&2
    exit 1
  fi
}

# check PRESET CTEST_ARGS...: runs tests, as many at once as there are cores: some watch the clock.
failed=()
check() {
  local preset=$1 started=$SECONDS; shift
  echo "run.sh: testing preset $preset: ctest $*"
  mkdir -p build/logs
  if ! ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$jobs" "${only[@]}" "$@" 2>&1 |
      tee "build/logs/$preset.log"; then
    failed+=("$preset")
  fi
  echo "run.sh: preset $preset took $((SECONDS - started)) s"
  if [ -s "build/$preset/scoreboard.txt" ]; then
    echo "run.sh: how right the answers are (docs/accuracy.md):"
    sed 's/^/  /' "build/$preset/scoreboard.txt"
  fi
}

# fuzz: each target for a minute, from the seeds that the project makes itself.
fuzz() {
  local target seeds=build/fuzz/seeds
  build/fuzz/tests/fuzz/write_seeds "$seeds"
  for target in "$seeds"/*/; do
    target=$(basename "$target")
    echo "run.sh: fuzzing $target for 60 s (log: build/logs/fuzz-$target.log)"
    local program=fuzz_$target
    case $target in text-*) program=fuzz_text ;; esac
    if ! RINGSCOPE_FUZZ_TARGET=$target "build/fuzz/tests/fuzz/$program" -max_total_time=60 -rss_limit_mb=2048 -timeout=20 \
        -artifact_prefix=build/logs/ "$seeds/$target" > "build/logs/fuzz-$target.log" 2>&1; then
      tail -n 40 "build/logs/fuzz-$target.log" >&2
      failed+=("fuzz $target")
    fi
  done
}

# other SCRIPT: a build for other systems. It says itself why it cannot be made here (exit status 77).
skipped=()
other() {
  local status=0
  echo "run.sh: $1"
  "$1" || status=$?
  case $status in
    0) ;;
    77) skipped+=("$1") ;;
    *) failed+=("$1") ;;
  esac
}

for preset in "${presets[@]}"; do
  build "$preset"
  check "$preset" -LE long
done
if [ "$all" = yes ]; then
  check release -L long
  other release/build.sh
  other release/aarch64.sh
  build fuzz
  fuzz
fi
[ ${#skipped[@]} -eq 0 ] || echo "run.sh: SKIPPED (the reason is above): ${skipped[*]}"

if [ ${#failed[@]} -gt 0 ]; then
  echo "run.sh: FAILED in: ${failed[*]} (logs in build/logs/)"
  exit 1
fi
echo "run.sh: all tests passed (${presets[*]})"
