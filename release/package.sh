#!/usr/bin/env bash
# The packages: a .deb and a relocatable .tar.gz in build/packages, with the analyzer's libraries linked statically. Where
# release/build.sh has run, they hold its library (glibc 2.17), and the analyzer starts on Debian 11 too (glibc 2.31).
#
#   release/package.sh            builds into build/package
#
# The same sources give the same bytes: times in the packages are that of the newest entry of CHANGELOG.md's commit, or SOURCE_DATE_EPOCH.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  '') ;;
  -h|--help) sed -n '2,/^set/{/^# \{0,1\}/s///p}' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "release/package.sh: unknown option $1 (try --help)" >&2; exit 64 ;;
esac

build=build/package
out=build/packages
mkdir -p $build
library=
old=
# The root that release/build.sh made has the C library that one links with.
if [ -e build/debian11/.complete ]; then
  old=$PWD/build/debian11
  echo "release/package.sh: the analyzer is linked for Debian 11 (glibc 2.31)"
fi
if [ -f build/release-debian11/libringscope-newer.so ]; then
  library=$PWD/build/release-debian11
  echo "release/package.sh: the library is that of release/build.sh (glibc 2.17)"
else
  echo "release/package.sh: no build/release-debian11: what is built here needs a glibc as new as this system's; release/build.sh first, for old systems"
fi
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct -- CHANGELOG.md 2> /dev/null || true)
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}
fi
export SOURCE_DATE_EPOCH
echo "release/package.sh: building (log: $build/build.log)"
if ! { cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DRINGSCOPE_TESTS=OFF -DRINGSCOPE_STATIC=ON \
         -DRINGSCOPE_LIBRARY_FOLDER="$library" -DRINGSCOPE_OLD_ROOT="$old" &&
       cmake --build $build -j "$(nproc)"; } > $build/build.log 2>&1; then
  grep -E -A12 'error|Error|FAILED' $build/build.log | tail -n 60 >&2 || tail -n 60 $build/build.log >&2
  echo "release/package.sh: it does not build (whole log: $build/build.log)" >&2
  exit 1
fi
rm -rf $out
cpack --config $build/CPackConfig.cmake -B "$PWD/$out" > $build/cpack.log 2>&1 || { tail -n 20 $build/cpack.log >&2; exit 1; }
rm -rf $out/_CPack_Packages
echo "release/package.sh: $out holds:"
ls -l $out
echo "release/package.sh: shared libraries that the analyzer needs: $(readelf -d $build/ringscope | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | paste -sd ' ')"
echo "release/package.sh: newest glibc that it asks for: $(readelf -V $build/ringscope | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)"
