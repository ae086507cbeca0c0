#!/usr/bin/env bash
# The library for old systems: built by g++ 10 in a Debian 11 root, held against the binary rules with glibc 2.17 as ceiling,
# and loaded there.
#
#   release/build.sh                  makes the root with debootstrap (once; about 500 MB, in build/debian11), builds, tests
#   release/build.sh --mirror URL     Debian mirror for debootstrap (default: debootstrap's own; also RINGSCOPE_DEBIAN_MIRROR)
#   release/build.sh --root DIR       folder of the root
#
# The result: build/release-debian11/libringscope.so. Exit status 77, with the reason, where it cannot be done (it needs
# root, debootstrap and Debian's archive), 1 when something is wrong with the library.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
usage() { sed -n '2,/^set/{/^# \{0,1\}/s///p}' "${BASH_SOURCE[0]}"; }
skip() { echo "release/build.sh: skipped: $*" >&2; exit 77; }

root=$PWD/build/debian11 out=$PWD/build/release-debian11 mirror=${RINGSCOPE_DEBIAN_MIRROR:-}
while [ $# -gt 0 ]; do
  case "$1" in
    --mirror) mirror=${2:?--mirror needs a URL}; shift ;;
    --root) root=$(realpath -m "${2:?--root needs a folder}"); shift ;;
    -h|--help) usage; exit 0 ;;
    *) echo "release/build.sh: unknown option $1 (try --help)" >&2; exit 64 ;;
  esac
  shift
done

[ "$(id -u)" = 0 ] || skip "debootstrap and chroot need root"
[ "$(uname -m)" = x86_64 ] || skip "the release build is for x86-64"
command -v debootstrap > /dev/null || skip "no debootstrap here (Debian package debootstrap)"
# Mounts of our own go away with this process, whatever ends it.
if [ -z "${RINGSCOPE_OWN_MOUNTS:-}" ]; then
  if unshare --mount --propagation private true ; then
    RINGSCOPE_OWN_MOUNTS=yes exec unshare --mount --propagation private "$PWD/release/build.sh" \
      --root "$root" ${mirror:+--mirror "$mirror"}
  fi
fi

mkdir -p "$out"
if [ ! -e "$root/.complete" ]; then
  echo "release/build.sh: making a Debian 11 root in $root (log: $out/debootstrap.log)"
  rm -rf --one-file-system "$root"
  if ! debootstrap --variant=minbase --include=g++,cmake,make bullseye "$root" $mirror > "$out/debootstrap.log" 2>&1; then
    tail -n 5 "$out/debootstrap.log" >&2
    skip "debootstrap cannot make a Debian 11 root (whole log: $out/debootstrap.log)"
  fi
  touch "$root/.complete"
fi

# Only what the library needs: whatever else is missing in there is missed by nothing.
rm -rf --one-file-system "$root/src" "$root/build"
mkdir -p "$root/src/tests"
cp -r CMakeLists.txt cmake recorder plugin preload release bench "$root/src"
cp -r tests/interface "$root/src/tests"
if [ -n "${RINGSCOPE_OWN_MOUNTS:-}" ]; then
  mount -t proc proc "$root/proc"  || echo "release/build.sh: no /proc in the root: not allowed to mount it"
fi
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C "$@"; }

echo "release/build.sh: building with $(in_root g++ --version | head -n 1), $(in_root cmake --version | head -n 1)"
if ! { in_root cmake -S /src -B /build -DCMAKE_BUILD_TYPE=Release -DRINGSCOPE_LIBRARY_ONLY=ON &&
       in_root cmake --build /build -j "$(nproc)"; } > "$out/build.log" 2>&1; then
  grep -E -A12 'error|Error' "$out/build.log" | tail -n 60 >&2 || tail -n 60 "$out/build.log" >&2
  echo "release/build.sh: the library does not build on Debian 11 (whole log: $out/build.log)" >&2
  exit 1
fi
in_root /build/smoke /build/libringscope.so
in_root /build/interface_model --callbacks 3000000
cp "$root/build/libringscope.so" "$root/build/libringscope-newer.so" "$root/build/exports.map" "$out/"
ln -sf libringscope.so "$out/libnccl-profiler-ringscope.so"
RINGSCOPE_GLIBC_LIMIT=2.17 python3 -B tests/rules/binary_rules.py "$out/libringscope.so"
echo "release/build.sh: $out/libringscope.so is good"
