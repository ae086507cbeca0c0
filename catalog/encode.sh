#!/bin/sh
# encode.sh PROTOC ROOT MESSAGE OUT FILE...: the textproto files as one serialized message (repeated fields are appended).
# encode.sh PROTOC ROOT MESSAGE:FIELD OUT FILE...: each file is one FIELD of the message.
set -eu
protoc=$1 root=$2 message=${3%%:*} field= out=$4
[ "$message" = "$3" ] || field=${3#*:}
shift 4
: > "$out.tmp"
for file in "$@"; do
  if ! { [ -z "$field" ] || echo "$field {"; cat "$file"; [ -z "$field" ] || echo "}"; } |
      "$protoc" --encode="$message" --proto_path="$root" "$root/proto/catalog.proto" >> "$out.tmp"; then
    echo "$file: not a valid $message" >&2
    exit 1
  fi
done
mv "$out.tmp" "$out"
