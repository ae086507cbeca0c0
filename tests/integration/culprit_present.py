"""The culprit is in the evidence: in hanging jobs each process in turn is the one that is killed, stopped or does nothing.

usage: culprit_present.py BUILD_TREE CAPTURES [--few] [--only REGEX] [--jobs N]

Whatever the captured job's own fault is, the process that stays away must have left a record (a trace or a flight file), and one
that does nothing must have written a trace: nobody else can tell what it did last.
--few    a sample of the captures (the CI tier)
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import verdict

FEW = re.compile(r"^(b1_rank2_skips_op10|2\.27\.7_rank3_gpu_hang)$")
WAYS = ("idle", "killed", "stopped")


def record_of(tree, path):
    done = subprocess.run([os.path.join(tree, "ringscope"), "show", "--format=json", path], capture_output=True, text=True,
                          timeout=60, errors="replace")
    return json.loads(done.stdout) if done.returncode == 0 else {}


def check(tree, capture, process, way):
    with tempfile.TemporaryDirectory() as out:
        try:
            verdict.replay(tree, capture, out, "--end", f"{process}:{way}")
            files = [f for ending in ("trace", "flight") for f in glob.glob(f"{out}/**/*rank{process}-*.{ending}", recursive=True)]
            faults = []
            records = [record_of(tree, f) for f in files]
            if not any(int(r.get("process", {}).get("rank", -1)) == process and r.get("communicators") for r in records):
                faults.append(f"no record: {[os.path.basename(f) for f in files]}")
            reasons = [os.path.basename(f).rsplit("-", 1)[-1][:-6] for f in files if f.endswith(".trace")]
            if way == "idle" and not set(reasons) & {"quiet", "wake", "marker", "stall"}:
                faults.append(f"it wrote no trace ({reasons})")
            if way == "killed" and not any(f.endswith(".flight") for f in files):
                faults.append("its flight file is gone")
            d = verdict.diagnose(tree, out)
            if d.whole.get("ranks_seen") != d.whole.get("ranks_total"):
                faults.append(f"{d.whole.get('ranks_seen')} of {d.whole.get('ranks_total')} ranks seen")
            return d.brief() + (f" [{', '.join(reasons)}]" if reasons else ""), faults
        except Exception as failure:  # a crash of one run is one failed run
            return "-", [str(failure)[:600]]


def has_events(capture, process):
    return bool(glob.glob(os.path.join(capture.folder, f"rank{process}.jsonl*")))


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("tree")
    parser.add_argument("captures")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=3)  # a replay mostly waits for the stall time
    args = parser.parse_args()
    tasks = [(c, p, way) for c in verdict.captures(args.captures)
             if c.hang and re.search(args.only, c.name) and (not args.few or FEW.match(c.name))
             for p in range(c.processes) if has_events(c, p) for way in WAYS]
    if len(tasks) < (1 if args.only else 10):
        sys.exit(f"only {len(tasks)} runs found in {args.captures}: captures missing?")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (c, p, way), (got, faults) in zip(tasks, pool.map(lambda t: check(args.tree, *t), tasks)):
            failed += bool(faults)
            print(f"{'FAILED' if faults else 'ok':6} {c.name}, process {p} {way}: {got}" + "".join(f"\n         {f}" for f in faults),
                  flush=True)
    print(f"culprit present: {len(tasks) - failed} of {len(tasks)} right")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
