"""One job on the stand-ins: its processes, its environment, what it leaves, what became of its faults."""
import json
import os
import shutil
import signal
import subprocess
import time

from bad_input import BadInput
from scenario_files import machine_file
from scenario_judge import evidence

STALL = 2.0


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
        "RINGSCOPE_STALL_SECONDS": str(STALL), "RINGSCOPE_SIM_FAULTS": scenario["faults"],
        "RINGSCOPE_SIM_FIRED": os.path.join(out, "fired"), "RINGSCOPE_SIM_SEED": str(scenario.get("seed", 1)),
        "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": os.path.join(out, "logs", f"nccl.rank{rank}.log"),
        **doors(tree, scenario.get("door", "plugin")),
        **({} if "machine" not in scenario else {
            "RINGSCOPE_SIM_MACHINE": os.path.abspath(machine_file(scenario["machine"])),
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
            said = subprocess.run([os.path.join(tree, "sim", "nvidia-smi"), *what.split()], env=env, capture_output=True, text=True)
            if said.returncode:
                raise BadInput(said.stderr.strip() or f"nvidia-smi {what} ended with {said.returncode}", said.returncode)
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


def texts_of(faults):
    """The faults of a text, in their own words, in order: numbered as the stand-in numbers them."""
    return [one.strip() for one in faults.split(";") if one.strip()]


class Outcome:
    """How the processes of a job ended, and which of its faults have acted."""

    def __init__(self, out, scenario, ends, ended_by_us):
        self.ends, self.ended_by_us, self.logs = ends, ended_by_us, os.path.join(out, "logs")
        faults, fired = texts_of(scenario["faults"]), set()
        if os.path.exists(os.path.join(out, "fired")):
            with open(os.path.join(out, "fired"), encoding="utf-8") as f:
                fired = {int(line.split()[1]) for line in f}
        self.fired = [text for n, text in enumerate(faults, 1) if n in fired]
        self.never = [text for n, text in enumerate(faults, 1) if n not in fired]

    def last_words(self, rank):
        with open(os.path.join(self.logs, f"program.rank{rank}.log"), encoding="utf-8", errors="replace") as f:
            lines = [line.strip() for line in f if line.strip()]
        return lines[-1][:300] if lines else "nothing"

    def lines(self):
        by = {}
        for rank, status in enumerate(self.ends):
            how = "still running when the time was up" if rank in self.ended_by_us else "ended in order" if status == 0 else \
                f"ended with exit status {status}" if status > 0 else f"killed by {signal.Signals(-status).name}"
            by.setdefault(how, []).append(rank)
        lines = ["; ".join(f"{how}: {len(ranks)} of {len(self.ends)}" + (f" (rank {', '.join(map(str, ranks))})" if len(ranks) <= 8 else "")
                           for how, ranks in by.items())]
        # Where all failed nothing was simulated: the reason is worth more than the records.
        if all(status > 0 for status in self.ends):
            lines.append(f"no process got to its end; rank 0 said: {self.last_words(0)}")
        lines += [f"this fault never happened: {text}" for text in self.never]
        return lines


def run(tree, name, scenario, out, seconds, watch=False):
    """Runs the job; what it leaves is in `out`. Returns its Outcome."""
    for folder in evidence(scenario) + ["machines"]:
        os.makedirs(os.path.join(out, folder), exist_ok=True)
    for h in range(scenario["hosts"]):
        with open(os.path.join(out, "machines", host_name(h)), "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in scenario.get("before", {}).get(host_name(h), []))
    nvidia_smi(tree, out, scenario, "before")
    n = scenario["hosts"] * scenario["ranks_per_host"]
    processes, ended_by_us = [], set()
    try:
        for rank in range(n):
            with open(os.path.join(out, "logs", f"program.rank{rank}.log"), "wb") as log:
                processes.append(subprocess.Popen(
                    [os.path.join(tree, "sim", "workload"), scenario["workload"], os.path.join(out, "id"), str(scenario["steps"])],
                    env=environment(tree, out, scenario, name, rank), stdout=log, stderr=subprocess.STDOUT, cwd=out))
        # A healthy job ends by itself; one that hangs is given the time to notice, and then ended as a scheduler would.
        watcher = Watcher(os.path.join(out, "logs", "program.rank0.log")) if watch else None
        end = time.monotonic() + scenario.get("seconds", seconds)
        while time.monotonic() < end and any(p.poll() is None for p in processes):
            if watcher:
                watcher.look()
            time.sleep(0.05)
    finally:
        for rank, p in enumerate(processes):
            if p.poll() is None:
                ended_by_us.add(rank)
                p.send_signal(signal.SIGKILL)
        for p in processes:
            p.wait()
    nvidia_smi(tree, out, scenario, "after")
    outcome = Outcome(out, scenario, [p.returncode for p in processes], ended_by_us)
    shutil.rmtree(os.path.join(out, "machines"))
    for left in ("id", "fired"):
        if os.path.exists(os.path.join(out, left)):
            os.remove(os.path.join(out, left))
    with open(os.path.join(out, "truth.json"), "w", encoding="utf-8") as f:
        json.dump({**scenario["truth"], "faults": scenario["faults"], "fired": outcome.fired, "never_fired": outcome.never}, f, indent=1)
    return outcome
