#!/usr/bin/env bash
# The library for aarch64: cross-built, held against the binary rules, and run under qemu-user where that is installed:
# the smoke test, the model of NCCL's interface (tests/interface), and the unit tests of recorder and plugin that need no
# protobuf.
#
#   release/aarch64.sh          builds into build/aarch64 (Debian packages g++-aarch64-linux-gnu, googletest, qemu-user)
#
# Exit status 77, with the reason, where the compiler is missing; 1 when something is wrong. What runs needs qemu-user and is
# left out, with a message, without it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  '') ;;
  -h|--help) sed -n '2,/^set/{/^# \{0,1\}/s///p}' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "release/aarch64.sh: unknown option $1 (try --help)" >&2; exit 64 ;;
esac
tools=aarch64-linux-gnu-
if ! command -v ${tools}g++ > /dev/null; then
  echo "release/aarch64.sh: skipped: no ${tools}g++ here (Debian package g++-aarch64-linux-gnu)" >&2
  exit 77
fi
gtest=/usr/src/googletest
if [ ! -f $gtest/CMakeLists.txt ]; then
  echo "release/aarch64.sh: no $gtest (Debian package googletest): the unit tests are left out" >&2
  gtest=
fi

build=build/aarch64
mkdir -p $build
echo "release/aarch64.sh: building with $(${tools}g++ --version | head -n 1) (log: $build/build.log)"
if ! { cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DRINGSCOPE_LIBRARY_ONLY=ON \
         -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64-linux-gnu.cmake" -DRINGSCOPE_GTEST_SOURCES=$gtest &&
       cmake --build $build -j "$(nproc)"; } > $build/build.log 2>&1; then
  grep -E -A12 'error|Error|FAILED' $build/build.log | tail -n 60 >&2 || tail -n 60 $build/build.log >&2
  echo "release/aarch64.sh: it does not build (whole log: $build/build.log)" >&2
  exit 1
fi
python3 -B tests/rules/binary_rules.py $build/libringscope.so --tools $tools Linkage TwoDoors
# The clock of the callbacks is the counter register, not a call.
reads=$(${tools}objdump -d $build/libringscope.so | grep -c cntvct_el0 || true)
if [ "$reads" = 0 ]; then
  echo "release/aarch64.sh: the library does not read cntvct_el0" >&2
  exit 1
fi

run=()
if [ "$(uname -m)" != aarch64 ]; then
  if ! command -v qemu-aarch64 > /dev/null; then
    echo "release/aarch64.sh: built and checked; not run: no qemu-aarch64 here (Debian package qemu-user)" >&2
    exit 0
  fi
  run=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
fi
"${run[@]}" $build/smoke $build/libringscope.so
"${run[@]}" $build/interface_model --callbacks 1000000
[ -n "$gtest" ] || exit 0
for tests in recorder_tests plugin_tests; do
  echo "release/aarch64.sh: $tests"
  "${run[@]}" $build/$tests --gtest_brief=1
done
echo "release/aarch64.sh: all passed"
