"""How fast the dumps of a job's flight recorders are diagnosed, beside a plain pickle.load() of the same files in the same run.

    bench/flight_recorder.py build/release/ringscope [--ranks 256] [--entries 2000] [--seed 1] [--rounds 3]

CPU seconds (user and system) of one process each, the best of the rounds, and their ratio; and whether the seeded fault was found.
"""
import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
import flight_recorder_jobs as jobs  # noqa: E402

LOAD = """
import gc, os, pickle, sys
gc.disable()
entries = 0
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), "rb") as f:
        entries += len(pickle.load(f)["entries"])
print(entries)
"""


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ringscope")
    parser.add_argument("--ranks", type=int, default=256)
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    missing = random.Random(options.seed).randrange(options.ranks)
    with tempfile.TemporaryDirectory() as folder:
        jobs.large(folder, options.ranks, options.entries, options.seed, missing)
        size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
        ours, theirs = [], []
        for _ in range(options.rounds):
            seconds, text = cpu_seconds([options.ringscope, "diagnose", "--format=json", folder])
            ours.append(seconds)
            first = json.loads(text)["findings"][0]
            theirs.append(cpu_seconds([sys.executable, "-c", LOAD, folder])[0])
        print(f"{options.ranks} dumps of {options.entries} entries, {size / 1e6:.0f} MB")
        print(f"ringscope diagnose     {min(ours):6.2f} s CPU: {first['title']}")
        print(f"pickle.load() of each  {min(theirs):6.2f} s CPU, without looking at anything")
        print(f"ratio                  {min(ours) / min(theirs):6.2f}")
        if first["kind"] != "missing_rank" or first["who"].get("ranks") != [missing]:
            sys.exit(f"the seeded fault (rank {missing}) was not found")


if __name__ == "__main__":
    main()
