"""Plays captures of real NCCL through the built library and judges what `ringscope diagnose` says of what is left.

usage: replay_cases.py BUILD_TREE CAPTURES VARIANT [--few] [--only REGEX] [--jobs N] [--seed N]

VARIANT  what is done to the evidence                    what is demanded
plain    nothing                                         kind and who right; nobody accused in healthy captures
kill     every process killed in mid-hang                the same, from flight files alone
pause    the captured pauses at their real length,       the same: no hang although the stall time is shorter
         longer than the stall time
permute  rank numbers, hosts and pids shuffled           the same, under the new numbers
drop     the record of one rank but the culprit's gone   right, or `undetermined` that names the missing record
cut      everybody killed between the hung operation's   never a wrong who
         first entry and the last callback

--few    a sample of the captures (the CI tier)
"""
import argparse
import concurrent.futures
import os
import random
import re
import sys
import tempfile

import verdict

# The sample of the CI tier: one capture of each mechanism and release.
FEW = re.compile(r"^(2\.24\.3_rank2_skips_op10|2\.26\.6_healthy.*|a3_healthy_v1|2\.27\.7_rank3_gpu_hang|2\.28\.9_rank2_skips_op10|"
                 r"b1_rank2_skips_op10|c5_.*|d1_rank1_sigstop.*|e2_rank1_.*|g6_plugin_.*|h2_.*|n4_.*|pp1_.*|sf2_.*)$")


PAUSES = re.compile(r"^d(1_idle_12s|2_rank0_work_6s)_")


def jobs_of(variant, capture, seed):
    """(label, replay options, judge) of each run that a variant makes with a capture."""
    rng = random.Random(f"{seed} {capture.name}")
    if variant == "plain":
        return [("", [], judge_right)]
    if variant == "kill":
        return [("", ["--kill"], judge_from_flight_files)] if capture.hang else []
    if variant == "pause":
        return [("", ["--speed", "1"], judge_right)] if PAUSES.match(capture.name) else []
    if variant == "permute":
        return [(f"seed {s}", ["--permute", str(s)], judge_right) for s in rng.sample(range(1, 10000), 2)]
    if not capture.hang or not capture.names_someone:
        return []
    if variant == "drop":
        others = [r for r in range(capture.processes) if r != capture.rank and r not in ranks_of(capture.edges)]
        return [(f"without {r}", ["--drop-rank", str(r)], lambda c, d, o, r=r: judge_without(c, d, r))
                for r in (others if capture.processes <= 4 else rng.sample(others, 3))]
    if variant == "cut":
        return [(f"cut at {f:.2f}", ["--cut", f"hang:{f:.3f}"], judge_not_wrong) for f in sorted(rng.random() for _ in range(5))]
    sys.exit(f"no variant {variant}")


def ranks_of(edges):
    return {int(r) for e in edges for r in e.split("->")}


def judge_status(d):
    want = d.expected_status()
    return [] if d.status == want else [f"exit status {d.status}, want {want}"]


def judge_right(capture, d, out):
    faults = judge_status(d)
    if not d.right_kind(capture):
        faults.append(f"kind {d.kinds[:3]}, want {sorted(capture.kinds if not capture.healthy else capture.tolerated)}")
    elif not capture.healthy and not d.right_who(capture):
        faults.append(f"who {d.brief()}, want {capture.rank} {sorted(capture.edges)} {capture.hosts or ''}")
    return faults


def judge_from_flight_files(capture, d, out):
    traces = [f for _, _, names in os.walk(out) for f in names if f.endswith(".trace")]
    stray = [f"{len(traces)} traces though every process was killed"] if traces and "abort" not in capture.name else []
    return stray + judge_right(capture, d, out)


def judge_without(capture, d, rank):
    if d.right_kind(capture) and d.right_who(capture):
        return judge_status(d)
    if not d.accuses_nobody():
        return [f"accuses {d.brief()}"]
    if d.kinds[0] != "undetermined":
        return [f"kind {d.kinds[0]}, want undetermined"]
    if not re.search(rf"\brank(s)?\b[^.]*\b{rank}\b", d.text):
        return [f"undetermined, but does not name the missing record of rank {rank}"]
    return judge_status(d)


def judge_not_wrong(capture, d, out):
    if d.accuses_nobody() or d.right_who(capture):
        return judge_status(d)
    return [f"accuses {d.brief()}, want {capture.rank} {sorted(capture.edges)}"]


def run(tree, capture, label, options, judge):
    with tempfile.TemporaryDirectory() as out:
        try:
            back = verdict.replay(tree, capture, out, *options)
            d = verdict.diagnose(tree, out, back=back)
            return f"{capture.name} {label}".strip(), d.brief(), judge(capture, d, out)
        except Exception as failure:  # a crash of one run is one failed run
            return f"{capture.name} {label}".strip(), "-", [str(failure)[:600]]


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("tree")
    parser.add_argument("captures")
    parser.add_argument("variant")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=3)  # a replay mostly waits for the stall time
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    chosen = [c for c in verdict.captures(args.captures) if re.search(args.only, c.name)]
    if args.few and args.variant != "pause":
        chosen = [c for c in chosen if FEW.match(c.name)]
    tasks, deferred = [], []
    for capture in chosen:
        runs = jobs_of(args.variant, capture, args.seed)
        if args.few and args.variant != "plain":
            runs = runs[:1]
        not_here = capture.deferred or (args.variant != "plain" and capture.needs_all)
        if not_here and runs:
            deferred.append(f"{capture.name} ({not_here})")
        else:
            tasks += [(args.tree, capture, *r) for r in runs]
    if len(tasks) < (1 if args.only else 2 if args.variant == "pause" else 5):
        sys.exit(f"only {len(tasks)} runs found in {args.captures}: captures missing?")

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, got, faults in pool.map(lambda t: run(*t), tasks):
            failed += bool(faults)
            print(f"{'FAILED' if faults else 'ok':6} {name}: {got}" + "".join(f"\n         {f}" for f in faults), flush=True)
    for d in deferred:
        print(f"not required: {d}")
    print(f"{args.variant}: {len(tasks) - failed} of {len(tasks)} right")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
