"""Compares what the NCCL stand-in tells a profiler with what real NCCL told in a capture of the same program.

usage: compare.py SIM_FOLDER CAPTURE [--show] [--faults=FAULTS]      SIM_FOLDER: build/<preset>/sim

FAULTS (tests/sim/nccl/faults.h) are what made the capture hang; the program is ended once nothing more is told.

Runs the capture's program on the stand-in, compares the grammars of both streams, then changes the stand-in's stream in several ways and
checks that each change is seen: a comparer that lets one through fails.
"""
import collections
import copy
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time

# What is known to differ: a pattern of a grammar's line, and why.
DIFFERENCES = [
    (r"\bProxyCtrl\b", "the stand-in has no events of the progress thread itself"),
]
# Depend on the run, or are written by one of the two recorders only.
LEFT_OUT = {"n", "t", "tid", "cb", "h", "ctx", "parent", "hin", "pid", "stream", "buff", "sendBuff", "recvBuff", "nWarps", "chunkSize",
            "parent_stopped", "parentGroup"}
WORDS = ("func", "datatype", "own_pid", "parentGroup_type", "isSend")


def capture_streams(folder):
    streams = []
    for name in sorted(glob.glob(os.path.join(folder, "rank*.jsonl.gz"))):
        with gzip.open(name, "rt") as f:
            streams.append([json.loads(line) for line in f if line.strip()])
    return streams


def program_of(folder):
    """The operations that the program's log says it called."""
    ops = []
    with open(os.path.join(folder, "app.rank0.log"), encoding="utf-8") as f:
        for line in f:
            m = re.search(r" op \d+ (\w+) (\w+) (\d+) x(\d+) call$", line)
            if m:
                ops.append(":".join(m.groups()))
    return ops


def wait_until_still(files, seconds=2.0, limit=60.0):
    """Until no file has grown for so long: the job hangs."""
    end, still, before = time.monotonic() + limit, time.monotonic(), None
    while time.monotonic() < end and time.monotonic() - still < seconds:
        sizes = [os.path.getsize(f) if os.path.exists(f) else -1 for f in files]
        if sizes != before or -1 in sizes:
            before, still = sizes, time.monotonic()
        time.sleep(0.05)


def simulated_streams(sim, ops, ranks, faults):
    with tempfile.TemporaryDirectory() as out:
        files = [os.path.join(out, f"rank{r}.jsonl") for r in range(ranks)]
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "RINGSCOPE_"))}
        processes = [subprocess.Popen(
            [os.path.join(sim, "sim_program"), os.path.join(out, "id"), *ops],
            env={**keep, "RANK": str(r), "WORLD_SIZE": str(ranks), "RINGSCOPE_SIM_HOST": f"node-{r}", "RINGSCOPE_TRACER_FILE": files[r], "RINGSCOPE_SIM_FAULTS": faults,
                 "NCCL_PROFILER_PLUGIN": os.path.join(sim, "libsim_tracer.so")}) for r in range(ranks)]
        try:
            if faults:
                wait_until_still(files)
                codes = []
            else:
                codes = [p.wait(timeout=100) for p in processes]
        finally:
            for p in processes:
                p.kill()
                p.wait()
        if any(codes):
            sys.exit(f"the program ended with {codes}")
        streams = []
        for name in files:
            with open(name, encoding="utf-8") as f:
                streams.append([json.loads(line) for line in f])
        return streams


def grammar(streams):
    """The set of lines that describe what may happen."""
    lines = set()
    for stream in streams:
        caller = next((e["tid"] for e in stream if e["cb"] == "init"), None)

        def thread(e):
            return "caller" if e.get("tid") == caller else "proxy"
        events, said = {}, []
        for e in stream:
            if e["cb"] == "start":
                words = {k: e[k] for k in WORDS if k in e}
                # The progress thread may begin before or after the calling thread has ended the operation: chance, in NCCL too.
                if e["type"] in ("Coll", "P2p"):
                    words["parent_stopped"] = bool(e.get("parent_stopped"))
                if e["type"] == "GroupApi":
                    words["depth"] = e["groupDepth"]
                fields = sorted(k for k in e if k not in LEFT_OUT)
                events[e["h"]] = [f"{thread(e)}: {e['type']} under {e.get('parent_type')} {sorted(words.items())} fields {fields}", []]
            elif e["cb"] in ("state", "stop") and e["h"] in events:
                events[e["h"]][1].append(f"{e.get('state', 'stop')} by {thread(e)}")
            elif e["cb"] in ("init", "finalize"):
                lines.add(f"{thread(e)}: {e['cb']}")
            if thread(e) == "caller" and e["cb"] in ("start", "state", "stop"):
                said.append((e["cb"], e["type"], e.get("state", "")))
        for head, states in events.values():
            lines.add(f"{head}: {', '.join(states)}")
        lines |= group_lines(said)
        lines |= count_lines(stream)
    return lines


def group_lines(said):
    """What the calling thread says from the start of a group to its end; neighbours that are equal are one."""
    lines, now = set(), []
    for one in said:
        now.append(" ".join(one).strip())
        if one[:2] == ("stop", "GroupApi"):
            text, before = "; ".join(now), None
            while before != text:  # a b a b -> (a b), for one and two neighbours
                before = text
                text = re.sub(r"(?:^|(?<=; ))((?:[^;]+; ){1,2})\1+", r"\1", text)
            lines.add(f"caller in a group: {text}")
            now = []
    return lines


def count_lines(stream):
    """Every call has its kernel's event and its proxy operations: which share of them, per kind of call."""
    children = collections.defaultdict(collections.Counter)
    calls = {}
    for e in stream:
        if e["cb"] != "start":
            continue
        if e["type"] in ("Coll", "P2p"):
            own = e.get("peer") == e["rank"]
            calls[e["h"]] = f"{e['type']} {'to itself' if own else ''}".strip()
        elif e["type"] in ("KernelCh", "ProxyOp"):
            children[e["parent"]][e["type"]] += 1
    return {f"{what} has {' and '.join(sorted(children[h])) or 'no children'}" for h, what in calls.items()}


def differences(real, simulated):
    found = []
    for what, lines in (("only in real NCCL", real - simulated), ("only in the stand-in", simulated - real)):
        for line in sorted(lines):
            if not any(re.search(pattern, line) for pattern, _ in DIFFERENCES):
                found.append(f"{what}: {line}")
    return found


def seeded(streams):
    """Streams that NCCL would not give, each with a name."""
    def changed(change):
        copies = copy.deepcopy(streams)
        change(copies[0])
        return copies

    def first(stream, cb, kind, state=None):
        return next(i for i, e in enumerate(stream) if e["cb"] == cb and e.get("type") == kind and state in (None, e.get("state")))

    def swap(stream):
        i = first(stream, "state", "ProxyStep", "ProxyStepRecvFlushWait")
        j = next(k for k in range(i + 1, len(stream)) if stream[k].get("h") == stream[i]["h"])
        stream[i], stream[j] = stream[j], stream[i]

    def drop(cb, kind, state=None):
        return lambda stream: stream.pop(first(stream, cb, kind, state))

    def put(cb, kind, **values):
        return lambda stream: stream[first(stream, cb, kind)].update(values)

    def move_launch(stream):
        i, j = first(stream, "start", "KernelLaunch"), first(stream, "stop", "GroupApi")
        stream.insert(j, stream.pop(i + 1))
        stream.insert(j - 1, stream.pop(i))

    caller = next(e["tid"] for e in streams[0] if e["cb"] == "init")
    return {
        "a step's states in another order": changed(swap),
        "a step that never stops": changed(drop("stop", "ProxyStep")),
        "a kernel without its stop state": changed(drop("state", "KernelCh")),
        "a proxy operation that is not in progress": changed(drop("state", "ProxyOp")),
        "a proxy operation on the calling thread": changed(put("start", "ProxyOp", tid=caller)),
        "a kernel under a proxy operation": changed(put("start", "KernelCh", parent_type="ProxyOp")),
        "an operation under its group": changed(put("start", "Coll", parent_type="GroupApi")),
        "a call that has not ended when its operation starts": changed(put("start", "Coll", parent_stopped=False)),
        "a group of depth 7": changed(put("start", "GroupApi", groupDepth=7)),
        "a function by another name": changed(put("start", "CollApi", func="allreduce")),
        "the launch behind the group": changed(move_launch),
        "no proxy operation under a collective": changed(lambda s: s.__setitem__(slice(None), [
            e for e in s if not (e["cb"] == "start" and e["type"] == "ProxyOp" and e["parent_type"] == "Coll")])),
    }


def main():
    sim, folder = sys.argv[1], sys.argv[2]
    faults = next((a.split("=", 1)[1] for a in sys.argv if a.startswith("--faults=")), "")
    recorded = capture_streams(folder)
    ops = program_of(folder)
    if not ops or not recorded:
        sys.exit(f"{folder}: no program or no streams")
    simulated = simulated_streams(os.path.abspath(sim), ops, len(recorded), faults)
    real, ours = grammar(recorded), grammar(simulated)
    if "--show" in sys.argv:
        print("\n".join(sorted(ours)))
    found = differences(real, ours)
    print("\n".join(found))
    print(f"{os.path.basename(folder)}: {len(ops)} operations, {len(real)} lines of grammar in NCCL's, {len(ours)} in the stand-in's, "
          f"{len(found)} not known to differ")
    failed = bool(found)
    for name, streams in seeded(simulated).items():
        if set(differences(real, grammar(streams))) <= set(found):
            failed = True
            print(f"not noticed: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
