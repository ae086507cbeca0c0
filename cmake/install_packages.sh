#!/usr/bin/env bash
# Installs the Debian packages of cmake/packages.txt that are missing; --long: those of the long tests too.
# Says what it does; changes nothing when all are there. Needs root or sudo only when something is missing.
set -euo pipefail

list=$(dirname "${BASH_SOURCE[0]}")/packages.txt
long=no
[ "${1:-}" = --long ] && long=yes

wanted=()
while read -r name; do
  case "$name" in
    ''|'#'*) ;;
    *'?') [ "$long" = no ] || wanted+=("${name%?}") ;;
    *) wanted+=("$name") ;;
  esac
done < "$list"

if ! command -v dpkg-query > /dev/null; then
  echo "install_packages: no dpkg here. Make sure that these are installed (Debian names): ${wanted[*]}" >&2
  exit 0
fi

missing=()
for name in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$name" 2> /dev/null || true)
  [ "$status" = installed ] || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "install_packages: not root and no sudo. Have these installed: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "install_packages: installing ${missing[*]}"
log=$(mktemp)
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "${missing[@]}"; } > "$log" 2>&1 < /dev/null; then
  tail -n 40 "$log" >&2
  echo "install_packages: apt-get failed (whole output: $log)" >&2
  exit 1
fi
rm -f "$log"
