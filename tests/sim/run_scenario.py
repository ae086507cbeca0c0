"""Runs a job on the stand-ins, with a fault, as a cluster would leave it behind.

usage: run_scenario.py BUILD_TREE SCENARIO --out DIR [--seconds S] [--watch]
       run_scenario.py BUILD_TREE --out DIR [--hosts H] [--ranks-per-host R] [--workload W] [--steps N] [--machine M] [--faults F]
                                                  a job of one's own
       run_scenario.py BUILD_TREE --all [--only REGEX] [--tier ci|long] [--jobs N]
                                                  runs the scenarios and holds each verdict against its truth
       run_scenario.py BUILD_TREE --doors [--only REGEX] [--tier ci|long] [--jobs N]
                                                  runs each with the profiler plugin, preloaded, and both; verdicts side by side
       run_scenario.py BUILD_TREE --list

A scenario is a file of tests/sim/scenarios, or a path to such a file; README.md there says what it holds. --door plugin|preload|both: how
the library gets into the processes. --seed N: other times that steps take. DIR gets traces/, flight/, logs/ (one NCCL log and one
program log a rank), where the scenario names a machine also kernel/ and nvidia-smi/ (before and after), and truth.json: what is true
of the job, which faults have happened, and which never did.

Exit status: 0; 1 a verdict is not right; 64 wrong usage, 65 a wrong file, both before anything is started.
"""
import argparse
import concurrent.futures
import math
import os
import re
import shutil
import sys
import tempfile

from bad_input import BadInput, all_of, nearest
from scenario_files import DOORS, ScenarioFile, check, scenarios
from scenario_judge import judge, judge_through_preload
from scenario_run import STALL, run

OWN = {"hosts": 2, "ranks_per_host": 4, "workload": "dp", "steps": 40, "machine": None, "faults": ""}
# Which options mean something in which of the five uses.
USES = {
    "a job of one's own": {"out", "seconds", "watch", "door", "seed", *OWN},
    "a scenario": {"out", "seconds", "watch", "door", "seed"},
    "--all": {"only", "tier", "jobs", "seconds", "door", "seed"},
    "--doors": {"only", "tier", "jobs", "seconds", "seed"},
    "--list": set(),
}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message}; --help lists what there is")


def whole(least, most):
    def read(text):
        if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a number from {least} to {most}")
        return int(text)
    return read


def positive(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a number of seconds above 0, up to 3600")
    return value


def expression(text):
    try:
        return re.compile(text)
    except re.error as e:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a regular expression: {e}") from None


def arguments(words):
    parser = Parser(prog="run_scenario.py", usage=__doc__, add_help=False, allow_abbrev=False)
    parser.add_argument("tree", nargs="?")
    parser.add_argument("scenario", nargs="?")
    for flag in ("--all", "--doors", "--list", "--watch", "--help", "-h"):
        parser.add_argument(flag, action="store_true")
    for option in ("--out", "--workload", "--machine", "--faults"):
        parser.add_argument(option)
    parser.add_argument("--door", choices=DOORS)
    parser.add_argument("--tier", choices=("ci", "long"))
    parser.add_argument("--only", type=expression)
    parser.add_argument("--seconds", type=positive)
    for option, least, most in (("--jobs", 1, 64), ("--seed", 0, 1000000000), ("--hosts", 1, 512), ("--ranks-per-host", 1, 512),
                                ("--steps", 1, 1000000)):
        parser.add_argument(option, type=whole(least, most))
    args = parser.parse_args(words)
    if args.help or args.h:
        print(__doc__.strip())
        raise SystemExit(0)
    if args.tree is None:
        parser.error("BUILD_TREE is missing")
    asked = [use for use in ("--all", "--doors", "--list") if getattr(args, use[2:])]
    if len(asked) > 1:
        parser.error(f"{' and '.join(asked)}: one of them")
    if asked and args.scenario is not None:
        parser.error(f"{args.scenario}: {asked[0]} takes no scenario (--only chooses)")
    args.use = asked[0] if asked else "a job of one's own" if args.scenario is None else "a scenario"
    for option in set().union(*USES.values()) - USES[args.use]:
        if getattr(args, option) not in (None, False):
            parser.error(f"--{option.replace('_', '-')} has no meaning for {args.use}")
    if "out" in USES[args.use] and not args.out:
        parser.error("--out DIR is missing: where the job's records go")
    return args


def check_tree(tree, judged):
    if not os.path.isdir(tree):
        raise BadInput(f"BUILD_TREE: {tree} is no folder; build/release is one after: cmake --preset release && cmake --build build/release")
    needed = ["sim/workload", "sim/check_job", "sim/nvidia-smi", "libringscope.so", "libringscope-newer.so"] + (["ringscope"] if judged else [])
    for name in needed:
        if not os.path.isfile(os.path.join(tree, name)):
            raise BadInput(f"BUILD_TREE: {tree} lacks {name}; build it: cmake --build {tree} --target sim_scenario{' ringscope_tool' if judged else ''}")


def prepare_out(out):
    """An empty folder; what an earlier job left in it goes."""
    if os.path.lexists(out) and not os.path.isdir(out):
        raise BadInput(f"--out: {out} is not a folder")
    try:
        if os.path.isdir(out) and not os.path.exists(os.path.join(out, "truth.json")) and os.listdir(out):
            raise BadInput(f"--out: {out} holds something else than an earlier job; name another folder")
        shutil.rmtree(os.path.realpath(out), ignore_errors=True)
        os.makedirs(os.path.realpath(out), exist_ok=True)
    except (OSError, ValueError) as e:
        raise BadInput(f"--out: {out} cannot be made: {getattr(e, 'strerror', None) or e}") from None


def seen_by(scenario):
    """The doors through which the scenario's fault can be seen at all; all of them unless it says otherwise."""
    return scenario.get("doors", DOORS)


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
    return 1 if failed else 0


def run_and_judge(tree, name, scenario, seconds):
    with tempfile.TemporaryDirectory() as out:
        outcome = run(tree, name, scenario, out, seconds)
        fault, brief = judge(tree, out, scenario)
        # The right verdict about something that has not happened is worth nothing.
        return (f"never happened: {'; '.join(outcome.never)}" if outcome.never else fault), brief


def run_all(args, chosen):
    for scenario in chosen.values():
        scenario["seed"], scenario["door"] = args.seed, door_of(scenario, args.door)
    if args.doors:
        return side_by_side(args.tree, chosen, args.seconds, args.jobs)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda item: run_and_judge(args.tree, item[0], item[1], args.seconds), chosen.items())
        for name, (fault, brief) in zip(chosen, results):
            failed += bool(fault)
            print(f"{'FAILED' if fault else 'ok':6} {name}: {brief}{'; ' + fault if fault else ''}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} scenarios right")
    return 1 if failed else 0


def run_one(args, known):
    if args.scenario is None:
        name = "own"
        scenario = {key: default if getattr(args, key) is None else getattr(args, key) for key, default in OWN.items()}
        scenario["truth"] = {}
        if scenario["machine"] is None:
            del scenario["machine"]
    else:
        path = known.get(args.scenario, args.scenario if args.scenario.endswith(".json") else None)
        if path is None:
            raise BadInput(f"there is no scenario {args.scenario[:80]!r}{nearest(args.scenario, known)} (--list names them)")
        name = re.sub(r"[^\w-]", "_", os.path.basename(path)[:-5]) or "scenario"
        scenario = ScenarioFile(path).read()
    scenario["seed"], scenario["door"] = args.seed, door_of(scenario, args.door)
    check(args.tree, scenario)
    prepare_out(args.out)
    outcome = run(args.tree, name, scenario, os.path.abspath(args.out), args.seconds, args.watch)
    for line in outcome.lines():
        print(f"run_scenario: {line}", flush=True)
    return 0


def main(words):
    args = arguments(words)
    known = scenarios()
    if args.list:
        for name, path in known.items():
            print(f"{name:28} {ScenarioFile(path).read()['about']}")
        return 0
    args.tree = os.path.abspath(args.tree)
    check_tree(args.tree, args.all or args.doors)
    for option, default in (("jobs", 2), ("seed", 1), ("seconds", STALL + 5), ("door", "plugin")):
        if getattr(args, option) is None:
            setattr(args, option, default)
    if not args.all and not args.doors:
        return run_one(args, known)
    files = {name: ScenarioFile(path).read() for name, path in known.items()}
    chosen = {n: s for n, s in files.items() if (args.only is None or args.only.search(n)) and args.tier in (None, s.get("tier", "ci"))}
    if not chosen:
        raise BadInput(f"--only, --tier: no scenario is left of {all_of(known)}")
    for scenario in chosen.values():
        check(args.tree, scenario)
    return run_all(args, chosen)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BadInput as e:
        print(f"run_scenario: {e}", file=sys.stderr)
        sys.exit(e.status)
    except OSError as e:
        # A tree whose programs are none, a full disk.
        if isinstance(e, BrokenPipeError):
            os._exit(0)  # whoever read the list has seen enough
        print(f"run_scenario: {e.filename or ''}: {e.strerror}", file=sys.stderr)
        sys.exit(70)
    except KeyboardInterrupt:
        print("run_scenario: interrupted; the job's processes were ended", file=sys.stderr)
        sys.exit(130)
