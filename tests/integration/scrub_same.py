"""`ringscope diagnose` says of scrubbed inputs what it says of the originals; scrubbing twice is scrubbing once.

usage: scrub_same.py RINGSCOPE CORPUS [--every N]

CORPUS: tests/corpus. Compared: state, and of each finding kind, confidence, cause, ranks, edges, whether it is over. Hosts are compared
through the map that scrub keeps. --every takes every N-th case only.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile


def cases(corpus):
    base = os.path.join(corpus, "cases")
    for name in sorted(n for n in os.listdir(base) if os.path.isdir(os.path.join(base, n))):
        yield name, [os.path.join(base, name, "input")]
    for folder in ("topology", "logs"):
        base = os.path.join(corpus, folder)
        for name in sorted(os.listdir(base)):
            path = os.path.join(base, name)
            yield f"{folder}/{name}", [os.path.join(path, n) for n in sorted(os.listdir(path))
                                       if n != "expected.json" and not n.startswith("topo.")]
    base = os.path.join(corpus, "ras")
    for name in sorted(os.listdir(base)):
        yield f"ras/{name}", [os.path.join(base, name)]


def diagnose(tool, paths, *flags):
    done = subprocess.run([tool, "diagnose", "--format=json", *flags, *paths], capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout), done.returncode


def verdict(diagnosis, hosts):
    def finding(f):
        who = f.get("who") or {}
        return (f.get("kind"), f.get("confidence"), json.dumps(f.get("cause")), tuple(who.get("ranks") or []),
                tuple((e.get("from"), e.get("to")) for e in who.get("edges") or []), bool(f.get("past")),
                tuple(sorted(hosts.get(h.lower(), h) for h in who.get("hosts") or [])), tuple((f.get("collateral") or {}).get("ranks") or []))
    return diagnosis.get("state"), [finding(f) for f in diagnosis["findings"]]


def dotted(hexadecimal):
    return ".".join(str(b) for b in bytes.fromhex(hexadecimal))


def tree(folder):
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


def check(tool, name, paths):
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        out, again, maps = (os.path.join(scratch, n) for n in ("out", "again", "map"))
        done = subprocess.run([tool, "scrub", f"--out={out}", f"--map={maps}", *paths], capture_output=True, text=True, timeout=300)
        if done.returncode not in (0, 65) or not os.path.isdir(out):
            return [f"{name}: scrub ended with {done.returncode}: {done.stderr[-300:]}"]
        hosts = {}
        with open(maps) as f:
            for line in f:
                part = line.rstrip("\n").split("\t")
                if part[0] == "host":
                    hosts[part[2]] = f"host-{part[1]}"
                elif part[0] == "ip4":
                    hosts[dotted(part[2])] = dotted(part[1])
        places = [os.path.join(out, n) for n in sorted(os.listdir(out))]
        before, code = diagnose(tool, paths)
        after, code_after = diagnose(tool, places)
        want, got = verdict(before, hosts), verdict(after, {})
        if want != got or code != code_after:
            problems.append(f"{name}:\n    original {code} {want}\n    scrubbed {code_after} {got}")
        shown, code_shown = diagnose(tool, paths, "--scrubbed", f"--map={maps}")
        if verdict(shown, {}) != want or code_shown != code:
            problems.append(f"{name}: --scrubbed\n    {verdict(shown, {})}\n    {want}")
        for host in hosts:
            if len(host) > 4 and not host.startswith(("host-", "node-")) and host in json.dumps(shown):
                problems.append(f"{name}: --scrubbed shows {host}")
        done = subprocess.run([tool, "scrub", f"--out={again}", *places], capture_output=True, text=True, timeout=300)
        first, second = tree(out), tree(again)
        if first != second:
            for path in sorted(set(first) | set(second)):
                a, b = first.get(path), second.get(path)
                if a != b:
                    lines = [(x, y) for x, y in zip((a or b"").splitlines(), (b or b"").splitlines()) if x != y][:2]
                    problems.append(f"{name}: scrubbed again, {path} differs: {lines}" if a is not None and b is not None else
                                    f"{name}: scrubbed again, {path} is {'gone' if b is None else 'new'}")
    return problems


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("tool")
    parser.add_argument("corpus")
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    chosen = list(cases(args.corpus))[::args.every]
    if len(chosen) < 5:
        return "no cases"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda c: check(args.tool, *c), chosen))
    problems = [p for found in results for p in found]
    print(f"{len(chosen)} cases, {sum(1 for r in results if not r)} the same")
    return "\n".join(problems) or None


if __name__ == "__main__":
    sys.exit(main())
