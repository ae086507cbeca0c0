"""What `ringscope run` asks the machine when a rank stalls: NVML, ports, kernel log, stacks, a user's command; and that no question that
hangs costs more than its own answer.

usage: evidence.py BUILD_TREE
"""
import glob
import json
import os
import re
import subprocess
import sys
import time

from common import Place, check

FAKE_PY_SPY = """#!/bin/sh
echo "Process $4: python train.py"
echo "Python v3.11.2 (/usr/bin/python3.11)"
echo
echo "Thread $4 (active): \\"MainThread\\""
echo "    next (torch/utils/data/dataloader.py:701)"
echo "    train (train.py:88)"
"""


class Stall(Place):
    """Two ranks, one of which never makes its 31st call; on a machine of four GPUs."""

    def run_it(self, state="", flags=(), seconds=7, path="", **more):
        machine = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sim", "machines", "hgx_h100x4.machine")
        state_file = os.path.join(self.root, "state")
        with open(state_file, "w", encoding="utf-8") as f:
            f.write(state)
        self.evidence = os.path.join(self.root, "out")
        ranks = []
        for rank in (0, 1):
            env = self.environment(False, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), RINGSCOPE_STALL_SECONDS="1", RINGSCOPE_JOB="j",
                                   RINGSCOPE_SIM_FAULTS="rank=1 op=31 do=absent", RINGSCOPE_SIM_MACHINE=machine, RINGSCOPE_SIM_MACHINE_STATE=state_file,
                                   LD_LIBRARY_PATH=os.path.join(self.tree, "sim"), PATH=path + os.environ["PATH"], **more)
            del env["RINGSCOPE_DIR"]
            ranks.append(subprocess.Popen([self.tool, "run", f"--dir={self.evidence}", *flags, "--", "timeout", "-s", "KILL",
                                           str(seconds), os.path.join(self.tree, "sim", "workload"), "dp", os.path.join(self.root, "id"), "20"],
                                          env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        start = time.time()
        self.said = [p.communicate(timeout=120)[1] for p in ranks]
        self.took = time.time() - start
        return {re.sub(r".*?\.stall\.(\d+\.)?", "", os.path.basename(f)) for f in glob.glob(os.path.join(self.evidence, "evidence", "*.stall.*"))}

    def paths(self, name, when="stall"):
        return [f for f in glob.glob(os.path.join(self.evidence, "evidence", f"*.{when}.*")) if re.search(r"\." + when + r"\.(\d+\.)?" + re.escape(name) + "$", f)]

    def read(self, name):
        text = ""
        for path in self.paths(name):
            with open(path, encoding="utf-8", errors="replace") as f:
                text += f.read()
        return text

    def diagnosis(self):
        done = subprocess.run([self.tool, "diagnose", "--format=json", self.evidence], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)


def main():
    tree = sys.argv[1]

    whole = Stall(tree)
    files = whole.run_it()
    check({"nvlink-s.txt", "nvlink-e.txt", "topo-p2p.txt", "smi-q.txt", "stacks.txt"} <= files, f"all that is there is asked: {files}")
    check(glob.glob(os.path.join(whole.evidence, "evidence", "*.start.nvlink-e.txt")), "counters at the start, too")
    check("files of evidence" in whole.said[0], f"and said: {whole.said}")
    check("system call" in whole.read("stacks.txt") and "rank 0 (pid" in whole.read("stacks.txt"), "threads of the ranks")
    check("rank 1 (pid" in whole.read("stacks.txt"), "of the rank, too, that has a run of its own and waits for nobody")
    for when in ("start", "stall"):
        check(len(whole.paths("nvlink-s.txt", when)) == 1, f"of two runs on one machine one asks it: {when} {whole.paths('nvlink-s.txt', when)}")
    first = whole.diagnosis()["findings"][0]
    check(first["kind"] == "host_blocked" and first["who"]["ranks"] == [1], f"a healthy machine is not accused: {first['title'] if 'title' in first else first}")

    short = Stall(tree)
    short.run_it(state="lanes 1 17\nerrors 1 4 300\n")
    found = [f for f in short.diagnosis()["findings"] if f["cause"]["id"] == "HW-02"]
    check(any(f["who"]["gpus"] for f in found), "the GPU that lacks a link is named")

    lost = Stall(tree)
    lost.run_it(state="lost 2\n")
    check("Unable to determine the device handle for GPU2" in lost.read("nvlink-s.txt"), "a lost GPU is nvidia-smi's line")

    hangs = Stall(tree)
    files = hangs.run_it(flags=("--evidence-seconds=2",), RINGSCOPE_SIM_NVML_HANGS="1")
    check("stacks.txt" in files and "GPU 0" not in hangs.read("nvlink-s.txt"), f"a driver that hangs costs its own files only: {files}")
    check(hangs.took < 30, f"and no time: {hangs.took:.0f} s")

    spied = Stall(tree)
    folder = os.path.join(spied.root, "bin")
    os.makedirs(folder)
    with open(os.path.join(folder, "py-spy"), "w", encoding="utf-8") as f:
        f.write(FAKE_PY_SPY)
    os.chmod(os.path.join(folder, "py-spy"), 0o755)
    files = spied.run_it(path=folder + ":", flags=("--on-stall=echo pids $RINGSCOPE_STALLED_PIDS in $RINGSCOPE_EVIDENCE_DIR; sleep 1000", "--evidence-seconds=2"))
    check("dataloader.py:701" in spied.read("stacks.txt"), "py-spy's stacks")
    check("command.txt" in files and "pids " in spied.read("command.txt"), f"the user's command, as far as it got: {files}")
    check(spied.took < 30, f"a command that sleeps for ever holds nobody: {spied.took:.0f} s")
    said = json.dumps(spied.diagnosis()["not_seen"])
    check("stacks.txt" not in said, f"the analyzer reads the stacks: {said}")

    check(subprocess.run([whole.tool, "run", "--evidence-seconds=x", "--", "true"], capture_output=True, check=False).returncode == 64, "a number of seconds")
    print("evidence at a stall: NVML, threads, stacks, a user's command; hanging ones cost nothing")


if __name__ == "__main__":
    main()
