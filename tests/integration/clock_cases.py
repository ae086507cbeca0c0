"""Replayed captures say the same whatever the hosts' clocks show (shifted_clocks.cc does the shifting).

usage: clock_cases.py BUILD_TREE CAPTURES [--few] [--only REGEX] [--jobs N]

--few    a sample of the captures (the CI tier)
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

import verdict

FEW = re.compile(r"^(2\.26\.6_healthy_mixed|b1_rank2_skips_op10|d1_rank1_sigstop.*|e2_rank1_.*|f1_.*|g6_plugin_.*|n4_.*|t1_.*|pp1_.*)$")


def run(tree, capture):
    with tempfile.TemporaryDirectory() as out:
        verdict.replay(tree, capture, out)
        done = subprocess.run([os.path.join(tree, "tests", "integration", "shifted_clocks"), out], capture_output=True, text=True,
                              timeout=120, errors="replace")
        return capture.name, done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("tree")
    parser.add_argument("captures")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=3)  # a replay mostly waits for the stall time
    args = parser.parse_args()
    chosen = [c for c in verdict.captures(args.captures) if re.search(args.only, c.name) and (not args.few or FEW.match(c.name))]
    if not chosen:
        sys.exit(f"no captures found in {args.captures}")
    # Nothing is left of a job whose communicator never came to be.
    chosen = [c for c in chosen if "init" not in c.name]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, status, said in pool.map(lambda c: run(args.tree, c), chosen):
            failed += status != 0
            print(f"{'ok' if status == 0 else 'FAILED':6} {name}: {said.strip() if status else said.strip().splitlines()[-1]}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} unchanged")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
