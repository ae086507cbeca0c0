#!/bin/sh
# A link command in which every library that has a static twin is replaced by it: Debian's CMake packages name the shared ones.
# What glibc itself is made of stays shared: it loads NVML and name services at run time.
#
# RINGSCOPE_OLD_ROOT: a folder with an older system's root, whose C library the program is linked with in place of this system's, so that it
# starts there too (release/package.sh). What the compiler's libraries miss in it is in release/old_glibc.c.
#
#   link_static.sh g++ ... -o FILE ...
first=$1
shift
libraries=
seen=:
for word in "$@"; do
  shift
  twin=
  case $word in /*.so|/*.so.*) twin=$(echo "$word" | sed 's/\.so[.0-9]*$/.a/') ;; esac
  if [ -z "$twin" ] || [ ! -f "$twin" ]; then
    set -- "$@" "$word"
    continue
  fi
  # Abseil's shared libraries know what they need themselves; its archives do not.
  case $twin in
    */libabsl_*|*/libprotobuf.a) twins="$twin $(dirname "$twin")/libabsl_*.a" ;;
    *) twins=$twin ;;
  esac
  # Once each: within a group order does not matter.
  for twin in $twins; do
    case $seen in *":$twin:"*) ;; *) seen=$seen$twin: libraries="$libraries $twin" ;; esac
  done
done
old=
if [ -n "${RINGSCOPE_OLD_ROOT:-}" ]; then
  gcc -O2 -fPIC -c "$(dirname "$0")/../release/old_glibc.c" -o old_glibc.o
  # The root's own linker scripts and links are absolute: they hold inside of it only.
  place=$RINGSCOPE_OLD_ROOT/lib/x86_64-linux-gnu
  start=$RINGSCOPE_OLD_ROOT/usr/lib/x86_64-linux-gnu
  rm -rf old_glibc && mkdir old_glibc
  for name in m pthread dl rt; do ln -s "$(echo "$place"/lib$name.so.*)" old_glibc/lib$name.so; done
  for name in crt1.o crti.o crtn.o Scrt1.o; do ln -s "$start/$name" old_glibc/$name; done
  echo "GROUP ( $place/libc.so.6 $start/libc_nonshared.a AS_NEEDED ( $(echo "$place"/ld-2.*.so) ) )" > old_glibc/libc.so
  old="old_glibc.o -B$PWD/old_glibc -L$PWD/old_glibc -lpthread -ldl"
fi
# shellcheck disable=SC2086  # a list of paths of this machine's packages, without spaces
exec "$first" "$@" $old -static-libstdc++ -static-libgcc -Wl,--start-group $libraries -Wl,--end-group
