#!/bin/bash
# Prolog of Slurm (slurm.conf: Prolog=/etc/slurm/prolog.d/ringscope.sh): keeps jobs off a node that is not fit for them.
# Slurm drains a node whose prolog does not end with 0 and gives the job another one. So only what failed may end so: not a
# warning, and not a tool that is missing or cannot run.
set -euo pipefail
ringscope=/opt/ringscope/bin/ringscope
baseline=/var/lib/ringscope/baseline.json  # ringscope doctor --save, on this node, when it was in order
log=/var/log/ringscope-doctor.log

[ -x "$ringscope" ] || exit 0
# The environment here is slurmd's, not the job's.
flags=(--quiet --color=never --seconds 10 --skip "settings,record")
if [ -r "$baseline" ]; then flags+=(--compare "$baseline"); fi

status=0
timeout 60 "$ringscope" doctor "${flags[@]}" > "$log" 2>&1 || status=$?
if [ "$status" -eq 1 ]; then
  grep '^FAILED' "$log" | logger -t ringscope-doctor || true
  exit 1
fi
exit 0
