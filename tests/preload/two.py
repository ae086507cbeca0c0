"""Two NCCLs in one process: each caller reaches the one that it is linked to, and both are recorded.

usage: two.py BUILD_TREE
"""
import os
import sys

from common import Place, check


def main():
    place = Place(sys.argv[1])
    here = os.path.join(place.tree, "tests", "preload")
    command = [os.path.join(here, "preload_two"), os.path.join(here, "libuser_a.so"), os.path.join(here, "libuser_b.so")]
    bare, wrapped = place.run(command, preload=False), place.run(command)
    check(bare.returncode == 0 and b"init in a\nall-reduce in a\ninit in b\nall-reduce in b\n" in bare.stdout, f"the test itself: {bare}")
    check(wrapped.returncode == 0 and wrapped.stdout == bare.stdout, f"each reaches its own:\n{wrapped.stdout.decode()}{wrapped.stderr.decode()}")
    check(len(place.records()[0]["communicators"]) >= 2, "both are recorded")
    print("two NCCLs, each reached by its own caller")


if __name__ == "__main__":
    main()
