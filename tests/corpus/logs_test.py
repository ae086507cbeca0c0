"""Logs of real NCCL alone: healthy jobs accuse nobody, whatever settings and emulated machines they ran with.

usage: logs_test.py RINGSCOPE LOGS
"""
import json
import os
import subprocess
import sys

FIRST = {"i1_init_rank2_absent": "init_incomplete"}  # what stands first; in all others nothing but harmless lines


def main():
    tool, base = sys.argv[1:]
    problems = []
    for name in sorted(os.listdir(base)):
        done = subprocess.run([tool, "diagnose", "--format=json", os.path.join(base, name)], capture_output=True, text=True, timeout=120)
        kinds = [finding["kind"] for finding in json.loads(done.stdout)["findings"]]
        wrong = kinds[:1] != [FIRST[name]] if name in FIRST else bool(set(kinds) - {"none"})
        print(name, kinds)
        if wrong:
            problems.append(f"{name}: {kinds}")
    return "\n".join(problems) or (None if len(os.listdir(base)) > 5 else "no logs")


if __name__ == "__main__":
    sys.exit(main())
