"""Runs a job on the stand-ins, with a fault, as a cluster would leave it behind.

usage: run_scenario.py BUILD_TREE SCENARIO --out DIR [--seconds S] [--watch]
       run_scenario.py BUILD_TREE --out DIR [--hosts H] [--ranks-per-host R] [--workload W] [--steps N] [--machine M] [--faults F]
                                                  a job of one's own
       run_scenario.py BUILD_TREE --all [--only REGEX] [--tier ci|long] [--jobs N]
                                                  runs the scenarios and holds each verdict against its truth
       run_scenario.py BUILD_TREE --doors [--only REGEX] [--tier ci|long] [--jobs N]
                                                  runs each with the profiler plugin, preloaded, and both; verdicts side by side
       run_scenario.py BUILD_TREE --list

A scenario is a file of tests/sim/scenarios; README.md there says what it holds. --seed N: other times that steps take.
DIR gets traces/, flight/, logs/ (one NCCL log and one program log a rank), where the scenario names a machine also kernel/ and
nvidia-smi/ (before and after), and truth.json.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STALL = 2.0


def scenarios():
    folder = os.path.join(HERE, "scenarios")
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                found[name[:-5]] = json.load(f)
    return found


def host_name(h):
    return f"node{h}"


def doors(tree, door):
    library = os.path.join(tree, "libringscope.so")
    newer = os.path.join(tree, "libringscope-newer.so")
    return {"NCCL_PROFILER_PLUGIN": "none" if door == "preload" else library,
            **({} if door == "plugin" else {"LD_PRELOAD": f"{library}:{newer}"})}


def environment(tree, out, scenario, name, rank):
    per_host, n = scenario["ranks_per_host"], scenario["hosts"] * scenario["ranks_per_host"]
    host = host_name(rank // per_host)
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "RINGSCOPE_", "SLURM_", "OMPI_", "TORCH"))}
    return {
        **keep, "RANK": str(rank), "WORLD_SIZE": str(n), "LOCAL_RANK": str(rank % per_host), "LOCAL_WORLD_SIZE": str(per_host),
        "RINGSCOPE_SIM_HOST": host, "RINGSCOPE_HOST": host, "RINGSCOPE_BOOT_ID": f"boot-of-{host}", "RINGSCOPE_JOB": name,
        "RINGSCOPE_DIR": os.path.join(out, "traces"), "RINGSCOPE_FLIGHT_DIR": os.path.join(out, "flight"),
        "RINGSCOPE_STALL_SECONDS": str(STALL), "RINGSCOPE_SIM_FAULTS": scenario["faults"], "RINGSCOPE_SIM_SEED": str(scenario.get("seed", 1)),
        "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": os.path.join(out, "logs", f"nccl.rank{rank}.log"),
        **doors(tree, scenario.get("door", "plugin")),
        **({} if "machine" not in scenario else {
            "RINGSCOPE_SIM_MACHINE": os.path.join(HERE, "machines", scenario["machine"] + ".machine"),
            "RINGSCOPE_SIM_MACHINE_STATE": os.path.join(out, "machines", host), "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,GRAPH",
            "RINGSCOPE_SIM_KERNEL_LOG": os.path.join(out, "kernel", f"{host}.log")}),
        **scenario.get("environment", {}),
    }


def nvidia_smi(tree, out, scenario, when):
    """What an operator asks every host for before and after: the state of the links, their errors, the way between GPUs."""
    if "machine" not in scenario:
        return
    for h in range(scenario["hosts"]):
        env = environment(tree, out, scenario, "", h * scenario["ranks_per_host"])
        for what in ("nvlink -s", "nvlink -e", "topo -m"):
            name = f"{host_name(h)}.{when}.{what.replace(' -', '-')}.txt"
            said = subprocess.run([os.path.join(tree, "sim", "nvidia-smi"), *what.split()], env=env, capture_output=True, text=True, check=True)
            with open(os.path.join(out, "nvidia-smi", name), "w", encoding="utf-8") as f:
                f.write(said.stdout)


class Watcher:
    """Shows what rank 0 prints, and how long it has printed nothing."""

    def __init__(self, path):
        self.file = open(path, encoding="utf-8", errors="replace")
        self.since = time.monotonic()
        self.told = 0

    def look(self):
        for line in self.file:
            print("  rank 0 |", line.rstrip(), flush=True)
            self.since, self.told = time.monotonic(), 0
        silent = int(time.monotonic() - self.since)
        if silent >= self.told + 3:
            print(f"  rank 0 | ... no step for {silent} s", flush=True)
            self.told = silent


def run(tree, name, scenario, out, seconds, watch=False):
    folders = evidence(scenario) + ["machines"]
    for folder in folders:
        os.makedirs(os.path.join(out, folder), exist_ok=True)
    for h in range(scenario["hosts"]):
        with open(os.path.join(out, "machines", host_name(h)), "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in scenario.get("before", {}).get(host_name(h), []))
    nvidia_smi(tree, out, scenario, "before")
    n = scenario["hosts"] * scenario["ranks_per_host"]
    processes = []
    for rank in range(n):
        log = open(os.path.join(out, "logs", f"program.rank{rank}.log"), "wb")
        processes.append(subprocess.Popen(
            [os.path.join(tree, "sim", "workload"), scenario["workload"], os.path.join(out, "id"), str(scenario["steps"])],
            env=environment(tree, out, scenario, name, rank), stdout=log, stderr=subprocess.STDOUT, cwd=out))
        log.close()
    # A healthy job ends by itself; one that hangs is given the time to notice, and then ended as a scheduler would.
    watcher = Watcher(os.path.join(out, "logs", "program.rank0.log")) if watch else None
    end = time.monotonic() + scenario.get("seconds", seconds)
    while time.monotonic() < end and any(p.poll() is None for p in processes):
        if watcher:
            watcher.look()
        time.sleep(0.05)
    for p in processes:
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
    for p in processes:
        p.wait()
    nvidia_smi(tree, out, scenario, "after")
    shutil.rmtree(os.path.join(out, "machines"))
    if os.path.exists(os.path.join(out, "id")):
        os.remove(os.path.join(out, "id"))
    with open(os.path.join(out, "truth.json"), "w", encoding="utf-8") as f:
        json.dump(scenario["truth"], f, indent=1)


def evidence(scenario):
    return ["traces", "flight", "logs"] + (["kernel", "nvidia-smi"] if "machine" in scenario else [])


def judge(tree, out, scenario):
    truth = scenario["truth"]
    # The stand-in's absent rank sleeps inside the call that it does not make; a preloaded library sees it there.
    kinds = truth["kinds"] + (["host_blocked"] if "missing_rank" in truth["kinds"] and scenario.get("door", "plugin") != "plugin" else [])
    done = subprocess.run([os.path.join(tree, "ringscope"), "diagnose", "--format=json", *(os.path.join(out, f) for f in evidence(scenario))],
                          capture_output=True, text=True, timeout=120)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return f"no JSON: {done.stderr[:300]}", "-"
    findings = [f for f in said["findings"] if f["kind"] != "none"]
    first = findings[0] if findings else None
    who = first["who"] if first else {}
    ranks, hosts = [int(r) for r in who.get("ranks", [])], who.get("hosts", [])
    brief = f"{said['state']}: " + (f"{first['kind']} ranks {ranks} hosts {hosts} ({first['confidence']})" if first else "nothing")
    if not truth["kinds"]:
        return ("accuses" if findings else ""), brief
    if first is None or first["kind"] not in kinds:
        return f"kind, want {truth['kinds']}", brief
    if "ranks" in truth and ranks != truth["ranks"]:
        return f"ranks, want {truth['ranks']}", brief
    edges = [[int(e["from"]), int(e["to"])] for e in who.get("edges", [])]
    if "edges" in truth and edges != truth["edges"]:
        return f"edges {edges}, want {truth['edges']}", brief
    order = ["possible", "probable", "established"]
    if order.index(first["confidence"]) < order.index(truth.get("at_least", "possible")):
        return f"confidence, want {truth['at_least']}", brief
    if "hosts" in truth and hosts != truth["hosts"]:
        return f"hosts, want {truth['hosts']}", brief
    if said["state"] != truth["state"]:
        return f"state, want {truth['state']}", brief
    return "", brief


def judge_through_preload(fault, brief, truth):
    """Without NCCL's own events less is known: what is said must still be no accusation of somebody else, and no all-clear."""
    if not fault:
        return "", brief
    words = re.match(r"(\w+): (?:(\w+) ranks \[([\d, ]*)\]|nothing)", brief)
    if words is None:
        return fault, brief
    state, kind, ranks = words.group(1), words.group(2), [int(r) for r in (words.group(3) or "").split(",") if r.strip()]
    if not truth["kinds"]:
        return fault, brief
    if kind in (None, "undetermined") and (state != "healthy" or truth["state"] in ("healthy", "slow", "recovered", "wrong_data")):
        return "", brief + " (sees less)"
    if "ranks" in truth and ranks and set(ranks) <= set(truth["ranks"]):
        return "", brief + " (another view of it)"
    return fault, brief


def seen_by(scenario):
    """The doors through which the scenario's fault can be seen at all; all of them unless it says otherwise."""
    return scenario.get("doors", ("plugin", "preload", "both"))


def door_of(scenario, asked):
    return asked if asked in seen_by(scenario) else seen_by(scenario)[-1]


def side_by_side(tree, chosen, seconds, jobs):
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = [(name, door) for name in chosen for door in seen_by(chosen[name])]
        results = dict(zip(runs, pool.map(lambda r: run_and_judge(tree, r[0], {**chosen[r[0]], "door": r[1]}, seconds), runs)))
    for name, scenario in chosen.items():
        for door in seen_by(scenario):
            fault, brief = results[name, door]
            if door == "preload":
                fault, brief = judge_through_preload(fault, brief, scenario["truth"])
            failed += bool(fault)
            print(f"{'FAILED' if fault else 'ok':6} {name:34} {door:8} {brief}{'; ' + fault if fault else ''}", flush=True)
    print(f"{len(runs) - failed} of {len(runs)} verdicts right")
    return 1 if failed or not chosen else 0


def run_and_judge(tree, name, scenario, seconds):
    with tempfile.TemporaryDirectory() as out:
        run(tree, name, scenario, out, seconds)
        return judge(tree, out, scenario)


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("tree")
    parser.add_argument("scenario", nargs="?")
    parser.add_argument("--out")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--doors", action="store_true")
    parser.add_argument("--door", choices=("plugin", "preload", "both"), default="plugin")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--tier", choices=("ci", "long"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--ranks-per-host", type=int, default=4)
    parser.add_argument("--workload", default="dp")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--machine")
    parser.add_argument("--faults", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--seconds", type=float, default=STALL + 5)
    args = parser.parse_args()
    args.tree = os.path.abspath(args.tree)
    known = scenarios()
    if args.list:
        for name, scenario in known.items():
            print(f"{name:28} {scenario['about']}")
        return 0
    if not args.all and not args.doors:
        if args.scenario is None:
            name = "own"
            scenario = {"hosts": args.hosts, "ranks_per_host": args.ranks_per_host, "workload": args.workload, "steps": args.steps,
                        "faults": args.faults, "truth": {"faults": args.faults}}
            if args.machine:
                scenario["machine"] = args.machine
        else:
            name, scenario = args.scenario, known.get(args.scenario)
        if scenario is None or not args.out:
            sys.exit(f"give --out, and one of: {', '.join(known)}")
        if os.path.exists(args.out) and not os.path.exists(os.path.join(args.out, "truth.json")) and os.listdir(args.out):
            sys.exit(f"{args.out} holds something else")
        scenario["seed"], scenario["door"] = args.seed, door_of(scenario, args.door)
        shutil.rmtree(args.out, ignore_errors=True)
        run(args.tree, name, scenario, os.path.abspath(args.out), args.seconds, args.watch)
        return 0
    for scenario in known.values():
        scenario["seed"], scenario["door"] = args.seed, door_of(scenario, args.door)
    chosen = {n: s for n, s in known.items() if re.search(args.only, n) and args.tier in (None, s.get("tier", "ci"))}
    if args.doors:
        return side_by_side(args.tree, chosen, args.seconds, args.jobs)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda item: run_and_judge(args.tree, item[0], item[1], args.seconds), chosen.items())
        for name, (fault, brief) in zip(chosen, results):
            failed += bool(fault)
            print(f"{'FAILED' if fault else 'ok':6} {name}: {brief}{'; ' + fault if fault else ''}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} scenarios right")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        os._exit(0)  # whoever read the list has seen enough
