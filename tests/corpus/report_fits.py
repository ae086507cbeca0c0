"""What is printed of every case fits: at most forty lines, eighty columns but for commands and names that cannot be broken.

usage: report_fits.py RINGSCOPE CASES
"""

import os
import subprocess
import sys

LINES, COLUMNS = 40, 80


def problems(tool, case):
    done = subprocess.run([tool, "diagnose", case], capture_output=True, text=True, check=False)
    lines = done.stdout.rstrip("\n").split("\n")
    if len(lines) < 4:
        yield f"only {len(lines)} lines, exit code {done.returncode}: {done.stderr.strip()}"
    if len(lines) > LINES:
        yield f"{len(lines)} lines, more than {LINES}"
    for line in lines:
        unbreakable = max(len(word) for word in line.split() or [""]) > COLUMNS - 8
        if len(line) > COLUMNS and not line.startswith("  $ ") and not unbreakable:
            yield f"{len(line)} columns: {line}"


def main():
    tool, cases = sys.argv[1:3]
    names = sorted(name for name in os.listdir(cases) if os.path.isdir(os.path.join(cases, name)))
    found = [f"{name}: {problem}" for name in names for problem in problems(tool, os.path.join(cases, name))]
    if not names:
        return f"no cases in {cases}"
    print(f"{len(names)} cases, {len(found)} problems")
    return "\n".join(found) or None


if __name__ == "__main__":
    sys.exit(main())
