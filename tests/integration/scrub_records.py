"""Records of replayed captures, scrubbed: the same verdict, no name of the originals, streams that can still be read.

usage: scrub_records.py BUILD_TREE CAPTURES [--few]
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import verdict

FEW = {"b1_rank2_skips_op10", "i4_init_rank2_sigstop", "h1_rank3_gpu_hang_before_kernel"}


def brief(d):
    return (d.whole["state"], d.status, [(f["kind"], f["confidence"], json.dumps(f.get("cause")), (f.get("who") or {}).get("ranks"),
                                          (f.get("who") or {}).get("edges"), (f.get("collateral") or {}).get("ranks")) for f in d.findings])


def contents(folder):
    found = []
    for path in glob.glob(folder + "/**/*.trace", recursive=True):
        with open(path, "rb") as f:
            found.append(f.read())
    return sorted(found)


def check(tree, capture, *options):
    with tempfile.TemporaryDirectory() as scratch:
        out, masked, again, mapping = (os.path.join(scratch, n) for n in ("secretproject", "masked", "again", "map"))
        os.environ["RINGSCOPE_STREAM"] = "ops"
        verdict.replay(tree, capture, out, *options)
        done = subprocess.run([os.path.join(tree, "ringscope"), "scrub", f"--out={masked}", f"--map={mapping}", out], capture_output=True, text=True)
        problems = []
        if done.returncode not in (0, 65) or not os.path.isdir(masked):
            return [f"{capture.name}: scrub ended with {done.returncode}: {done.stderr[-300:]}"]
        before, after = brief(verdict.diagnose(tree, out)), brief(verdict.diagnose(tree, masked))
        if before != after:
            problems.append(f"{capture.name} {options}:\n    original {before}\n    scrubbed {after}")
        hosts = [h for h in capture.expected.get("hosts") or [] if h and not h.startswith("host-")]
        kinds = {os.path.splitext(n)[1] for n in glob.glob(masked + "/**/*.*", recursive=True)}
        given = {os.path.splitext(n)[1] for n in glob.glob(out + "/**/*.*", recursive=True)}
        # Captures of jobs that never came up have logs only.
        if ".flight" in kinds or (".stream" in given) != (".stream" in kinds) or (".trace" in kinds) != bool(given & {".trace", ".flight"}):
            problems.append(f"{capture.name}: wrote {sorted(kinds)}")
        for path in glob.glob(masked + "/**/*", recursive=True):
            if any(h in path for h in [*hosts, "secretproject"]):
                problems.append(f"{capture.name}: the name {path}")
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    data = f.read()
                problems += [f"{capture.name}: {path} holds {h}" for h in [*hosts, "secretproject", scratch] if h.encode() in data]
        for path in glob.glob(masked + "/**/*.stream", recursive=True):
            shown = subprocess.run([os.path.join(tree, "ringscope"), "show", path], capture_output=True, text=True)
            if shown.returncode != 0 or shown.stderr or " host-" not in shown.stdout:
                problems.append(f"{capture.name}: {path}: {shown.stderr or shown.stdout[:300]}")
        subprocess.run([os.path.join(tree, "ringscope"), "scrub", f"--out={again}", masked], capture_output=True, check=False)
        if contents(again) != contents(masked):
            problems.append(f"{capture.name}: traces changed when they were scrubbed again")
        return problems


def main():
    tree, base = sys.argv[1:3]
    problems, n = [], 0
    for capture in verdict.captures(base):
        if "--few" in sys.argv and capture.name not in FEW:
            continue
        n += 1
        found = check(tree, capture)
        problems += found
        print(capture.name, "the same" if not found else found, flush=True)
    return "\n".join(problems) or (None if n > 1 else "no capture")


if __name__ == "__main__":
    sys.exit(main())
