"""What the simulated cluster says to input that it cannot use: a message that names what and where, the exit status, and nothing started.

usage: bad_input_test.py BUILD_TREE

Every case is a row: what is given, the exit status, and words that the message must hold.
"""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile

import run_scenario
from bad_input import BadInput
from scenario_files import ScenarioFile, check, scenarios

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))

# --faults TEXT of a job of 2 hosts with 2 ranks each, 20 steps of dp, on machines hgx_h100x4.
FAULTS = [
    ("garbage", "garbage", "not of the form key=value"),
    ("rank=1", "fault 1", "do= is missing"),
    ("op=5 do=kill", "rank= is missing"),
    ("rank=1 do=kill", "it does not say when", "op=, init=, at="),
    ("rank=1 op=5", "do= is missing"),
    ("rank=1 op=5 at=1 do=kill", "twice when"),
    ("rank=1 op=5 op=6 do=kill", '"op" is given twice'),
    ("rank=1 op=5 do=kil", "do=kil: there is no such fault", "absent, kill, stop"),
    ("rank=1 op=5 do=KILL", "no such fault"),
    ("rank=1 op=5 do=", "do=", "not of the form"),
    ("rank=1 op=0 do=kill", "counted from 1"),
    ("rank=1 op=-5 do=kill", "op=-5"),
    ("rank=1 op=5- do=kill", "op=5-"),
    ("rank=1 op=+ do=kill", "op=+"),
    ("rank=1 op=1e3 do=kill", "op=1e3"),
    ("rank=1 op=0x10 do=kill", "op=0x10"),
    ("rank=1 op=99999999999999999999 do=kill", "op=9999"),
    ("rank=x op=5 do=kill", "rank=x: not a number from 0"),
    ("rank=-1 op=5 do=kill", "rank=-1"),
    ("rank=1,2 op=5 do=kill", "rank=1,2"),
    ("rank=4 op=5 do=kill", "rank=4: this job has ranks 0 to 3"),
    ("rank=1 op=61 do=kill", "rank 1 makes 60 calls in 20 steps of dp"),
    ("rank=1 op=5000 do=kill", "op=5000"),
    ("rank=1 init=2 do=kill", "creates 1 communicator"),
    ("rank=1 init=0 do=kill", "init=0"),
    ("rank=1 at=0 do=kill", "at=0"),
    ("rank=1 at=1s do=kill", "at=1s"),
    ("rank=1 at=nan do=kill", "at=nan"),
    ("rank=1 at=2 do=absent", "do=absent cannot be told by at=", "op init"),
    ("rank=1 init=1 do=skip", "do=skip cannot be told by init="),
    ("rank=1 op=5 do=shm", "do=shm cannot be told by op="),
    ("rank=1 op=5 do=late", "do=late needs ms="),
    ("rank=1 op=5 do=late ms=-3", "ms=-3"),
    ("rank=1 op=5 do=late ms=1.5", "ms=1.5"),
    ("rank=1 op=5 do=kill ms=5", "do=kill takes no ms="),
    ("rank=1 op=5 do=port gpu=1", "do=port takes no gpu=; it takes nic ms"),
    ("rank=1 op=5 do=sticky error=0", "error=0"),
    ("rank=1 op=5 do=kill host=node1", 'there is no key "host"', "rank, op, init"),
    ("rank=1 op=5 do=kill Rank=1", '"Rank"'),
    ("rank=1 op=5 do=lanes gpu=4", "gpu=4: a machine has GPUs 0 to 3"),
    ("rank=1 op=5 do=lanes link=18", "link=18"),
    ("rank=1 op=5 do=lanes to=2", "NVSwitches"),
    ("rank=1 op=5 do=port nic=4", "nic=4: a machine has adapters 0 to 3"),
    ("rank=1 op=5 do=edge_stalled to=4", "to=4: this job has ranks 0 to 3"),
    ("rank=1 op=5 do=edge_stalled to=1", "no edge to itself"),
    ("rank=1 op=5 do=edge_stalled to=0", "on the same host"),
    ("rank=1 op=5 do=kill; rank=1 op=5 do=kill", "fault 2", "the same as fault 1"),
    ("rank=1 op=5 do=kill; rank=2 op=x do=kill", "fault 2", "op=x"),
    ("rank=1 op=5 do=kill;; rank=2 op=5 do=kill", "fault 2", "empty"),
    (";", "fault 1", "empty"),
    ("rank=1 op=5 do=kill, rank=2 op=5 do=kill", "do=kill,"),
    ("rank=1 op=5 do=kill\x07\x1b[2J", "do=kill??"),
    ("rank=1\u00a0op=5 do=kill", "rank=1"),
    ("=1 op=5 do=kill", 'no key ""'),
    ("x" * 5000, "..."),
]

# Words of run_scenario.py's command line, without the tree; "OUT" is a folder that must not be made.
COMMANDS = [
    ("--out OUT --workload nonsense", 64, '--workload: there is no "nonsense"; there are dp'),
    ("--out OUT --workload DP", 64, "--workload"),
    ("--out OUT --hosts 0", 64, "--hosts: '0' is not a number from 1"),
    ("--out OUT --hosts -1", 64, "--hosts"),
    ("--out OUT --hosts 2.5", 64, "--hosts"),
    ("--out OUT --hosts 100 --ranks-per-host 8", 64, "--hosts: 800 ranks in all"),
    ("--out OUT --ranks-per-host 0", 64, "--ranks-per-host"),
    ("--out OUT --ranks-per-host 9", 64, "--ranks-per-host: there must be 1 to 8"),
    ("--out OUT --steps 0", 64, "--steps"),
    ("--out OUT --steps ten", 64, "--steps: 'ten' is not a number"),
    ("--out OUT --machine nosuch", 64, '--machine: there is no "nosuch"', "hgx_h100x4"),
    ("--out OUT --machine hgx_h100x44", 64, "did you mean hgx_h100x4?"),
    ("--out OUT --machine ../machines/none.machine", 65, "none.machine: cannot be read"),
    ("--out OUT --machine /dev/null", 65, "/dev/null: is not a file"),
    ("--out OUT --machine hgx_h100x4 --ranks-per-host 5", 64, "this machine has 4 GPUs"),
    ("--out OUT --seconds 0", 64, "--seconds"),
    ("--out OUT --seconds nan", 64, "--seconds"),
    ("--out OUT --seed -1", 64, "--seed"),
    ("--out OUT --door window", 64, "--door", "plugin"),
    ("--out OUT --fautls x", 64, "--fautls"),
    ("--out OUT --fault x", 64, "--fault"),
    ("--out OUT --jobs 2", 64, "--jobs has no meaning"),
    ("--out OUT --tier ci", 64, "--tier has no meaning"),
    ("--out", 64, "--out"),
    ("", 64, "--out DIR is missing"),
    ("dp_killed", 64, "--out DIR is missing"),
    ("dp_killd --out OUT", 64, "no scenario 'dp_killd'; did you mean dp_killed?"),
    ("dp_killed again --out OUT", 64, "again"),
    ("dp_killed --out OUT --faults rank=1", 64, "--faults has no meaning for a scenario"),
    ("dp_killed --out OUT --hosts 3", 64, "--hosts has no meaning"),
    ("no/such.json --out OUT", 65, "no/such.json: cannot be read: No such file"),
    ("dp_killed --out " + __file__, 64, "is not a folder"),
    ("dp_killed --out " + HERE, 64, "holds something else"),
    ("dp_killed --out /dev/null/x", 64, "--out: /dev/null/x cannot be made"),
    ("dp_killed --all", 64, "takes no scenario"),
    ("--all --doors", 64, "one of them"),
    ("--all --out OUT", 64, "--out has no meaning for --all"),
    ("--all --only [", 64, "--only: '[' is not a regular expression"),
    ("--all --only nothing_of_this_name", 64, "no scenario is left"),
    ("--all --tier short", 64, "--tier"),
    ("--all --jobs 0", 64, "--jobs"),
    ("--doors --door both", 64, "--door has no meaning"),
]

# A change to a good scenario, and words of the message.
SCENARIOS = [
    (lambda t: "", "1:1: not JSON"),
    (lambda t: t.replace('"hosts": 2,', '"hosts": 2'), "not JSON"),
    (lambda t: "[]", "one JSON object"),
    (lambda t: "[" * 100000, ""),
    (lambda t: t.replace('"hosts": 2', '"hosts": 2, "hosts": 3'), '"hosts" is given twice'),
    (lambda t: t.replace('"hosts": 2', '"hosts": "2"'), ':3: "hosts" must be a number'),
    (lambda t: t.replace('"hosts": 2', '"hosts": true'), '"hosts" must be a number'),
    (lambda t: t.replace('"hosts": 2', '"hosts": -2'), "hosts: there must be 1 to"),
    (lambda t: t.replace('"hosts"', '"host"'), 'there is no "host"; did you mean hosts?'),
    (lambda t: t.replace('"workload": "dp"', '"workload": "pd"'), ':5: workload: there is no "pd"'),
    (lambda t: t.replace('"steps": 20', '"steps": 0'), "steps: there must be"),
    (lambda t: t.replace("rank=3", "rank=33"), ":7: faults: fault 1", "rank=33"),
    (lambda t: t.replace('"state": "hang"', '"state": "hung"'), '"state" in truth must be a state of a job: unknown, healthy'),
    (lambda t: t.replace("process_exited", "process_gone"), '"kinds" in truth', "process_exited"),
    (lambda t: t.replace('"kinds"', '"kind"'), 'there is no "kind" in truth; did you mean kinds?'),
    (lambda t: t.replace("   3\n", "   4\n"), "truth names rank 4"),
    (lambda t: t.replace('"steps": 20', '"steps": 20, "machine": "none"'), 'machine: there is no "none"'),
    (lambda t: t.replace('"steps": 20', '"steps": 20, "tier": "sometimes"'), '"tier" must be "ci" or "long"'),
    (lambda t: t.replace('"steps": 20', '"steps": 20, "doors": []'), '"doors" must be'),
    (lambda t: t.replace('"steps": 20', '"steps": 20, "seconds": 0'), '"seconds" must be'),
    (lambda t: t.replace('"steps": 20', '"steps": 20, "environment": {"RINGSCOPE_SIM_FAULTS": ""}'), "keys of its own"),
    (lambda t: t.replace('"steps": 20', '"steps": 20, "before": {"node0": ["lost 1"]}'), "before: node0: hosts have no machine"),
    (lambda t: t.replace('"steps": 20', '"steps": 20, "machine": "hgx_h100x4", "before": {"node2": ["lost 1"]}'), "node2: no host"),
    (lambda t: t.replace('"steps": 20', '"steps": 20, "machine": "hgx_h100x4", "before": {"node0": ["lost 1", "lost 9"]}'), "node0, line 2:", "no GPU"),
    (lambda t: t.replace("rank 3", "rank \udcff"), "cannot be read"),
]

GPU = "gpu 0 bus 1b pci 1a cpu 0\ngpu 1 bus 2b pci 2a cpu 0\n"
# A machine's text, the line of the mistake (0: none), and words of the message.
MACHINES = [
    ("", 0, "it has no GPU"),
    ("# nothing\n", 0, "it has no GPU"),
    ("gpu 1 bus 1b pci 1a cpu 0\n", 0, 'no line "gpu 0 bus'),
    ("gpu 64 bus 1b pci 1a cpu 0\n", 1, "0 to 63"),
    ("gpu -1 bus 1b pci 1a cpu 0\n", 1, "0 to 63"),
    ("gpu 0 bus 1b\n", 1, "it must say bus, pci, cpu"),
    ("gpu 0 bus zz pci 1a cpu 0\n", 1, "bus zz: not a hexadecimal number"),
    ("gpu 0 bus 0 pci 1a cpu 0\n", 1, "bus 0"),
    ("gpu 0 bus 1b bus 1c cpu 0\n", 1, "given twice"),
    ("gpu 0 bus 1b pci 1a cpu\n", 1, "cpu has no value"),
    ("gpu 0 buss 1b pci 1a cpu 0\n", 1, "buss: not one of"),
    ("gpu\n", 1, "does not say of what"),
    (GPU + "lanes 0 18\n", 3, 'lanes join pairs'),
    ("switch\n" + GPU + "lanes 0-1 2\n", 4, "lead to the switches"),
    ("switch\n" + GPU + "lanes 2 18\n", 4, "no GPU of this machine. It has 2"),
    ("switch\n" + GPU + "lanes 0\n", 4, "a number is missing"),
    ("switch\n" + GPU + "lanes 0 19\n", 4, "from 0 to 18"),
    ("switch\n" + GPU + "lanes 0 -1\n", 4, "from 0 to 18"),
    (GPU + "lanes 0-0 2\n", 3, "two GPUs"),
    (GPU + "lanes 0-7 2\n", 3, "no GPU"),
    (GPU + "lanes 0- 2\n", 3, "no GPU"),
    (GPU + "refuse 0\n", 3, "not a pair"),
    (GPU + "refuse 0-1 now\n", 3, "too much"),
    ("sm ninety\n" + GPU, 1, "ninety: not a number"),
    ("lane 0\n" + GPU, 1, "above 0"),
    ("switch on\n" + GPU, 1, "too much"),
    ("gdr yes\n" + GPU, 1, "from 0 to 1"),
    (GPU + "nic mlx5_0 bus 1c pci 1a cpu 0\n", 3, "bus, pci, cpu, gbps"),
    (GPU + "nic_state mlx5_0 DOWN\n", 3, "no adapter"),
    (GPU + "nic m bus 1c pci 1a cpu 0 gbps 400\nnic_state m down\n", 4, "UP or DOWN"),
    (GPU + "errors 0 18 5\n", 3, "from 0 to 17"),
    (GPU + "errors 0 1\n", 3, "a link and a count"),
    (GPU + "lost 5\n", 3, "no GPU"),
    (GPU + "gpus 3\n", 3, 'there is no "gpus"; lines begin with'),
    ("include itself\n", 1, "includes itself"),
    ("include ../../x\n", 1, "beside this one"),
    ("include\n", 1, "one machine"),
    ("include nowhere\n", 0, "nowhere.machine: cannot be read"),
    ("\x00\x01\x02" * 100, 1, "there is no"),
    ("x" * (2 << 20), 0, "1 MiB"),
]

# A setting, the program, the exit status, words. MACHINE is a good one, BROKEN one with a mistake in line 2.
SETTINGS = [
    ({"RINGSCOPE_SIM_FAULTS": "rank=0 op=x do=kill"}, "workload", 64, 'RINGSCOPE_SIM_FAULTS: fault 1 "rank=0 op=x do=kill": op=x'),
    ({"RINGSCOPE_SIM_FAULTS": "rank=0 op=1 do=lanes gpu=9", "RINGSCOPE_SIM_MACHINE": "MACHINE"}, "workload", 64, "gpu=9: a machine has GPUs 0 to 3"),
    ({"RINGSCOPE_SIM_FAULT": ""}, "workload", 64, "no setting RINGSCOPE_SIM_FAULT;", "RINGSCOPE_SIM_FAULTS"),
    ({"RINGSCOPE_SIM_DEVICES": "many"}, "workload", 64, "RINGSCOPE_SIM_DEVICES=many: not a number from 0 to 64"),
    ({"RINGSCOPE_SIM_DEVICES": "-1"}, "nvidia-smi", 64, "RINGSCOPE_SIM_DEVICES"),
    ({"RINGSCOPE_SIM_DEVICES": "8", "RINGSCOPE_SIM_MACHINE": "MACHINE"}, "nvidia-smi", 64, "has 4 GPUs"),
    ({"RINGSCOPE_SIM_DEVICES": "0"}, "workload", 64, "this machine has no such GPU"),
    ({"RINGSCOPE_SIM_P2P": "no"}, "workload", 64, "RINGSCOPE_SIM_P2P=no"),
    ({"RINGSCOPE_SIM_SEED": "1.5"}, "workload", 64, "RINGSCOPE_SIM_SEED=1.5"),
    ({"RINGSCOPE_SIM_HOST": "a b"}, "workload", 64, "RINGSCOPE_SIM_HOST"),
    ({"RINGSCOPE_SIM_NVML_HANGS": "maybe"}, "nvidia-smi", 64, "RINGSCOPE_SIM_NVML_HANGS=maybe"),
    ({"RINGSCOPE_SIM_KERNEL_LOG": "/no/such/folder/log"}, "workload", 64, "RINGSCOPE_SIM_KERNEL_LOG", "cannot be written"),
    ({"RINGSCOPE_SIM_MACHINE_STATE": "/no/such/folder/state"}, "workload", 64, "RINGSCOPE_SIM_MACHINE_STATE"),
    ({"RINGSCOPE_SIM_MACHINE": "/no/such"}, "workload", 65, "RINGSCOPE_SIM_MACHINE: /no/such: cannot be read"),
    ({"RINGSCOPE_SIM_MACHINE": "BROKEN"}, "workload", 65, "broken.machine:2:"),
    ({"RINGSCOPE_SIM_MACHINE": "BROKEN"}, "nvidia-smi", 65, "broken.machine:2:"),
    ({"RINGSCOPE_SIM_MACHINE": "/"}, "nvidia-smi", 65, "/: is not a file"),
    ({"RINGSCOPE_SIM_MACHINE": "FIFO"}, "nvidia-smi", 65, "is not a file"),
    ({"RINGSCOPE_SIM_MACHINE": "MACHINE", "RINGSCOPE_SIM_MACHINE_STATE": "BROKEN"}, "nvidia-smi", 65, "broken.machine:2:"),
    ({"RANK": "x"}, "workload", 64, "RANK=x"),
    ({"RANK": "1"}, "workload", 64, "RANK=1: not a number from 0 to 0"),
    ({"WORLD_SIZE": "0"}, "workload", 64, "WORLD_SIZE=0"),
    ({"WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "2"}, "workload", 64, "multiple of LOCAL_WORLD_SIZE"),
]

PROGRAMS = [
    (["workload"], 64, "usage: workload NAME ID_FILE STEPS; names are dp, tp_dp"),
    (["workload", "nonsense", "ID", "5"], 64, 'there is no "nonsense"; there are dp'),
    (["workload", "dp", "/no/such/id", "5"], 64, "ID_FILE", "/no/such/id"),
    (["workload", "dp", "ID", "0"], 64, "STEPS: 0"),
    (["workload", "dp", "ID", "five"], 64, "STEPS: five"),
    (["workload", "dp", "ID", "5", "more"], 64, "usage"),
    (["sim_ranks", "0"], 64, "usage: sim_ranks", "1 to 256"),
    (["sim_ranks", "two"], 64, "usage"),
    (["sim_ranks", "2", "-5"], 64, "usage"),
    (["threads", "0"], 64, "usage: threads", "1 to 4096"),
    (["threads", "4", "0"], 64, "usage"),
    (["plan"], 64, "usage: plan"),
    (["plan", "/no/such"], 65, "/no/such: cannot be read"),
    (["check_job", "colour=red"], 64, 'no "colour"; there are hosts'),
    (["nvidia-smi", "-q"], 64, 'not "-q"'),
    (["nvidia-smi"], 64, "knows nvlink -s"),
]

DEMO = [
    (["--nonsense"], 64, "unknown option --nonsense"),
    (["--scenario"], 64, "needs a name"),
    (["--scenario", "nosuch"], 64, "no scenario 'nosuch'"),
    (["--scenario", "../scenarios/dp_killed"], 64, "takes a name"),
    (["--scenario", "dp_killed", "again"], 64, "too much"),
    (["--list", "all"], 64, "too much"),
    ([""], 64, "empty word"),
    (["/no/such"], 64, "'/no/such' is no folder of a capture", "b1_rank2_skips_op10"),
    (["tests"], 64, "'tests' is no folder of a capture"),
]


class Test:
    def __init__(self, tree, scratch):
        self.tree, self.scratch, self.cases, self.wrong = tree, scratch, 0, 0
        self.out = os.path.join(scratch, "out")

    def expect(self, what, status, said, want, words):
        self.cases += 1
        faults = [f"exit status {status}, want {want}"] if status != want else []
        faults += [f"does not say {word!r}" for word in words if word not in said]
        faults += ["a traceback"] if "Traceback" in said else []
        faults += ["something was started"] if os.path.exists(self.out) else []
        shutil.rmtree(self.out, ignore_errors=True)
        if faults:
            self.wrong += 1
            print(f"{what}: {'; '.join(faults)}\n    said: {said.strip()[:600]}")

    def scenario_command(self, words):
        """run_scenario's main, in this process: what it would end with and print."""
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                return run_scenario.main(words), out.getvalue()
        except BadInput as e:
            return e.status, str(e)

    def program(self, words, environment=None):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE_", "NCCL_")) and k not in ("RANK", "WORLD_SIZE")}
        done = subprocess.run(words, env={**keep, **(environment or {})}, capture_output=True, text=True, timeout=60, cwd=self.scratch)
        return done.returncode, done.stdout + done.stderr

    def faults(self):
        for text, *words in FAULTS:
            job = ["--machine", "hgx_h100x4", "--hosts", "2", "--ranks-per-host", "2", "--steps", "20"]
            status, said = self.scenario_command([self.tree, "--out", self.out, *job, "--faults=" + text])
            self.expect(f"--faults {text[:80]!r}", status, said, 64, ["--faults: fault", *words])

    def commands(self):
        for text, want, *words in COMMANDS:
            status, said = self.scenario_command([self.tree, *text.replace("OUT", self.out).split()])
            self.expect(f"run_scenario {text}", status, said, want, words)
        empty = os.path.join(self.scratch, "empty")
        os.makedirs(empty)
        rubbish = os.path.join(self.scratch, "rubbish")
        for name in ("sim/workload", "sim/check_job", "sim/nvidia-smi", "libringscope.so", "libringscope-newer.so"):
            os.makedirs(os.path.dirname(os.path.join(rubbish, name)), exist_ok=True)
            with open(os.path.join(rubbish, name), "w", encoding="utf-8") as f:
                f.write("rubbish")
        script = [sys.executable, "-B", run_scenario.__file__]
        for words, want, said_words in (([], 64, ["BUILD_TREE is missing"]), (["/no/such", "dp_killed", "--out", self.out], 64, ["/no/such is no folder"]),
                                        ([empty, "dp_killed", "--out", self.out], 64, ["lacks sim/workload", "--target sim_scenario"]),
                                        ([rubbish, "dp_killed", "--out", self.out], 70, ["check_job: "]),
                                        ([self.tree, "--help"], 0, ["usage: run_scenario.py BUILD_TREE"])):
            self.expect(f"run_scenario {words}", *self.program([*script, *words]), want, said_words)

    def scenario_files(self):
        with open(scenarios()["dp_killed"], encoding="utf-8") as f:
            good = f.read()
        for n, (change, *words) in enumerate(SCENARIOS):
            path = os.path.join(self.scratch, f"bad{n}.json")
            assert change(good) != good, n
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
                f.write(change(good))
            status, said = self.scenario_command([self.tree, path, "--out", self.out])
            self.expect(f"scenario {n}", status, said, 65, [f"bad{n}.json", *words])
        for path in scenarios().values():
            check(self.tree, ScenarioFile(path).read())  # raises
            self.cases += 1

    def machines(self):
        folder = os.path.join(self.scratch, "machines")
        os.makedirs(folder)
        for n, (text, line, *words) in enumerate(MACHINES):
            path = os.path.join(folder, "itself.machine" if "itself" in text else f"m{n}.machine")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            status, said = self.program([os.path.join(self.tree, "sim", "plan"), path])
            self.expect(f"machine {text[:60]!r}", status, said, 65, [f"{path}:{line}: " if line else ".machine: ", *words])

    def settings(self):
        places = {"MACHINE": os.path.join(HERE, "machines", "hgx_h100x4.machine"), "BROKEN": os.path.join(self.scratch, "broken.machine"),
                  "FIFO": os.path.join(self.scratch, "fifo")}
        with open(places["BROKEN"], "w", encoding="utf-8") as f:
            f.write("sm 90\nnonsense\n")
        os.mkfifo(places["FIFO"])
        words_of = {"workload": ["dp", os.path.join(self.scratch, "id"), "3"], "nvidia-smi": ["topo", "-m"]}
        for settings, program, want, *words in SETTINGS:
            status, said = self.program([os.path.join(self.tree, "sim", program), *words_of[program]],
                                        {k: places.get(v, v) for k, v in settings.items()})
            self.expect(f"{program} with {settings}", status, said, want, words)

    def programs(self):
        for (name, *words), want, *said_words in PROGRAMS:
            words = [os.path.join(self.scratch, "id") if word == "ID" else word for word in words]
            self.expect(f"{name} {words}", *self.program([os.path.join(self.tree, "sim", name), *words]), want, said_words)
        for words, want, *said_words in DEMO:
            self.expect(f"demo {words}", *self.program([os.path.join(SOURCE, "examples", "demo.sh"), *words]), want, ["demo: ", *said_words])

    def what_happened(self):
        """The last call of a rank is where the check says that it is, and faults that did not happen are told."""
        for workload, hosts, per_host, rank, last in (("dp", 1, 2, 0, 9), ("tp_dp", 2, 2, 1, 15), ("fsdp", 1, 2, 1, 6), ("moe", 1, 2, 0, 6), ("zero", 1, 2, 1, 12),
                                                     ("pipeline", 1, 3, 0, 9), ("pipeline", 1, 3, 1, 15), ("regroup", 1, 2, 1, 9), ("odd_sum", 1, 2, 0, 9)):
            job = [self.tree, "--out", self.out, "--hosts", str(hosts), "--ranks-per-host", str(per_host), "--workload", workload, "--steps", "3"]
            fault = f"rank={rank} op={last} do=late ms=1"
            status, said = self.scenario_command([*job, "--faults", fault])
            with open(os.path.join(self.out, "truth.json"), encoding="utf-8") as f:
                truth = json.load(f)
            shutil.rmtree(self.out)
            good = truth["fired"] == [fault] and truth["never_fired"] == [] and "never happened" not in said and "ended in order" in said
            self.expect(f"{workload} at call {last}: {truth}", status, said if good else "", 0, ["ended in order"])
            status, said = self.scenario_command([*job, "--faults", f"rank={rank} op={last + 1} do=late ms=1"])
            self.expect(f"{workload} at call {last + 1}", status, said, 64, [f"makes {last} calls"])
        faults = "rank=0 op=2 do=exit; rank=0 op=3 do=late ms=1; rank=1 at=3000 do=kill"
        status, said = self.scenario_command([self.tree, "--out", self.out, "--hosts", "1", "--ranks-per-host", "2", "--seconds", "1", "--faults", faults])
        with open(os.path.join(self.out, "truth.json"), encoding="utf-8") as f:
            truth = json.load(f)
        shutil.rmtree(self.out)
        told = truth["fired"] == ["rank=0 op=2 do=exit"] and truth["never_fired"] == ["rank=0 op=3 do=late ms=1", "rank=1 at=3000 do=kill"]
        self.expect(f"faults that never happened: {truth}", status, said if told else "", 0,
                    ["never happened: rank=0 op=3 do=late ms=1", "never happened: rank=1 at=3000 do=kill"])


def main():
    with tempfile.TemporaryDirectory() as scratch:
        test = Test(os.path.abspath(sys.argv[1]), scratch)
        for part in (test.faults, test.commands, test.scenario_files, test.machines, test.settings, test.programs, test.what_happened):
            part()
    print(f"{test.cases - test.wrong} of {test.cases} inputs answered rightly")
    return 1 if test.wrong or test.cases < 250 else 0


if __name__ == "__main__":
    sys.exit(main())
