"""Processes without NCCL under LD_PRELOAD: as without it, and nothing is left behind.

usage: manners.py BUILD_TREE [--processes N]
"""
import argparse
import os
import subprocess
import sys

from common import Place, check

FORKS = """
import os, subprocess, sys, threading
pid = os.fork()
if pid == 0:
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
assert subprocess.run(["/bin/sh", "-c", "exit 5"]).returncode == 5          # vfork
assert subprocess.run([sys.executable, "-c", "print('exec')"], capture_output=True).stdout == b"exec\\n"
threads = [threading.Thread(target=lambda: None) for _ in range(1000)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree")
    parser.add_argument("--processes", type=int, default=300)
    args = parser.parse_args()
    place = Place(args.tree)

    for command in (["/bin/true"], ["/bin/false"], ["/bin/sh", "-c", "echo out; echo err >&2; exit 9"], [sys.executable, "-c", FORKS],
                    ["/bin/sh", "-c", "kill -SEGV $$"]):
        bare, wrapped = place.run(command, preload=False), place.run(command)
        check((bare.returncode, bare.stdout, bare.stderr) == (wrapped.returncode, wrapped.stdout, wrapped.stderr),
              f"{command}: {bare} without us, {wrapped} with us")
    check(not place.left() and not os.path.exists(place.flight), f"nothing is written: {place.left()}")

    shell = f"i=0; while [ $i -lt {args.processes} ]; do /bin/true || exit 1; i=$((i+1)); done"
    done = place.run(["/bin/sh", "-c", shell], timeout=900)
    check(done.returncode == 0 and not done.stderr, f"{args.processes} short processes: {done}")
    check(not place.left() and not os.path.exists(place.flight), f"{args.processes} processes leave nothing: {place.left()}")

    # No descriptor is open, no mapping is made, no thread runs.
    probe = "import os; print(len(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')))"
    bare, wrapped = place.run([sys.executable, "-c", probe], preload=False), place.run([sys.executable, "-c", probe])
    check(bare.stdout == wrapped.stdout, f"descriptors and threads: {bare.stdout} without us, {wrapped.stdout} with us")
    maps = place.run(["/bin/cat", "/proc/self/maps"]).stdout.decode()
    check("ringscope-" not in maps.replace("libringscope-newer", ""), "no flight file is mapped")
    # A library path that is wrong is the loader's message, not the job's end.
    gone = subprocess.run(["/bin/true"], env={**os.environ, "LD_PRELOAD": "/nowhere/libringscope.so"}, capture_output=True, check=False)
    check(gone.returncode == 0, "a missing library ends nothing")
    print(f"{args.processes} processes left nothing behind")


if __name__ == "__main__":
    main()
