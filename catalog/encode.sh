#!/bin/sh
# encode.sh PROTOC ROOT MESSAGE OUT FILE...: the textproto files as one serialized message (repeated fields are appended).
set -eu
protoc=$1 root=$2 message=$3 out=$4
shift 4
: > "$out.tmp"
for file in "$@"; do
  if ! "$protoc" --encode="$message" --proto_path="$root" "$root/proto/catalog.proto" < "$file" >> "$out.tmp"; then
    echo "$file: not a valid $message" >&2
    exit 1
  fi
done
mv "$out.tmp" "$out"
