#!/bin/sh
# A link command in which every library that has a static twin is replaced by it: Debian's CMake packages name the shared ones.
# What glibc itself is made of stays shared: it loads NVML and name services at run time.
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
# shellcheck disable=SC2086  # a list of paths of this machine's packages, without spaces
exec "$first" "$@" -static-libstdc++ -static-libgcc -Wl,--start-group $libraries -Wl,--end-group
