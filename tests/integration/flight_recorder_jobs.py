"""Jobs as PyTorch's flight recorder would have dumped them: one pickle a rank, healthy or with a fault.

The shape follows torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (version 2.10 of the dump): frames and strings are shared, start and end of
an operation are noticed at once when it retires, an operation that did not end has neither.
"""
import json
import os
import pickle
import random

SECOND = 1_000_000_000
START = 1_780_000_000 * SECOND
TIMEOUT_MS = 600_000

FRAMES = [
    {"name": "all_reduce", "filename": "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 2806},
    {"name": "wrapper", "filename": "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", "line": 81},
    {"name": "train_step", "filename": "/srv/app/train.py", "line": 88},
    {"name": "<module>", "filename": "/srv/app/train.py", "line": 140},
]


class Rank:
    """What one rank called, in its order."""

    def __init__(self, job, rank):
        self.job, self.rank = job, rank
        self.entries = []
        self.collectives = {}
        self.messages = {}
        self.clock = START + rank * 1000
        self.next_record = 0

    def _entry(self, group, name, sizes, state, p2p, line, out=None, created=None):
        self.clock += 2_000_000
        created = created or self.clock
        done = state == "completed"
        noticed = created + 60_000_000 if done else None
        timing = self.job.timing
        entry = {
            "frames": self.job.frames[line] if line in self.job.frames else self.job.frames.setdefault(
                line, FRAMES[:2] + [dict(FRAMES[2], line=line)] + FRAMES[3:]),
            "record_id": self.next_record, "pg_id": self.job.group_number(group),
            "process_group": (group, self.job.groups[group][0]),
            "thread_name": "pt_main_thread", "thread_id": "140227",
            "collective_seq_id": self.collectives.get(group, 0), "p2p_seq_id": self.messages.get(group, 0),
            "op_id": self.next_record + 1, "profiling_name": name, "time_created_ns": created,
            "input_sizes": [list(sizes)], "input_dtypes": ["BFloat16"],
            "output_sizes": [list(out or sizes)], "output_dtypes": ["BFloat16"],
            "state": state,
            "time_discovered_started_ns": noticed if timing and done else self.job.taken if state == "started" else None,
            "time_discovered_completed_ns": noticed + 4000 if done else None,
            "retired": done, "timeout_ms": TIMEOUT_MS, "is_p2p": p2p,
        }
        if timing and done:
            entry["duration_ms"] = 1.5
        self.next_record += 1
        self.entries.append(entry)
        return entry

    def collective(self, group, name="all_reduce", sizes=(1048576,), state="completed", line=88, out=None):
        self.collectives[group] = self.collectives.get(group, 0) + 1
        return self._entry(group, "nccl:" + name, sizes, state, False, line, out)

    def coalesced(self, group, calls, state="completed", end="coalesced", with_end=True):
        """`calls`: (name, sizes). They have no state of their own."""
        self.collectives[group] = self.collectives.get(group, 0) + 1
        for name, sizes in calls:
            self._entry(group, "nccl:" + name, sizes, "scheduled", False, 90)["retired"] = False
        if with_end:
            entry = self._entry(group, "nccl:" + end, (), state, False, 90)
            entry["input_sizes"] = entry["output_sizes"] = []
            entry["input_dtypes"] = entry["output_dtypes"] = []

    def message(self, group, peer, send, state="completed", sizes=(8192, 1024)):
        self.messages[group] = self.messages.get(group, 0) + 1
        own = self.job.groups[group][1].index(self.rank)
        name = f"nccl:send {own}->{peer}" if send else f"nccl:recv {own}<-{peer}"
        return self._entry(group, name, sizes, state, True, 95)

    def batch(self, group, calls, state="completed"):
        """batch_isend_irecv: `calls` are (peer, send)."""
        self.messages[group] = self.messages.get(group, 0) + 1
        own = self.job.groups[group][1].index(self.rank)
        for peer, send in calls:
            name = f"nccl:send {own}->{peer}" if send else f"nccl:recv {own}<-{peer}"
            self._entry(group, name, (8192, 1024), "scheduled", True, 95)
        entry = self._entry(group, "nccl:coalesced", (), state, True, 95)
        entry["input_sizes"] = entry["output_sizes"] = []

    def dump(self):
        job = self.job
        mine = {g: info for g, info in job.groups.items() if self.rank in info[1]}
        kept = self.entries[-job.ring:]
        return {
            "version": job.version,
            "pg_config": {g: {"name": g, "desc": desc, "ranks": "[" + ", ".join(map(str, ranks)) + "]"}
                          for g, (desc, ranks) in mine.items()},
            "comm_lib_version": "2.28.9",
            "pg_status": {str(job.group_number(g)): {"last_enqueued_collective": self.collectives.get(g, 0),
                                                     "last_started_collective": self.collectives.get(g, 0),
                                                     "last_completed_collective": self.collectives.get(g, 0)} for g in mine},
            "entries": kept,
        }


class Job:
    def __init__(self, ranks, timing=False, ring=2000, version="2.10"):
        self.timing, self.ring, self.version = timing, ring, version
        self.groups = {"0": ("default_pg", list(range(ranks)))}
        self.frames = {}
        self.taken = START + 3600 * SECOND
        self.ranks = [Rank(self, r) for r in range(ranks)]

    def group(self, name, description, ranks):
        self.groups[name] = (description, list(ranks))

    def group_number(self, name):
        return list(self.groups).index(name)

    def all(self, group="0", **call):
        for r in self.groups[group][1]:
            self.ranks[r].collective(group, **call)

    def write(self, folder, leave_out=(), name="nccl_trace_rank_{}", protocol=2, as_json=False):
        os.makedirs(folder, exist_ok=True)
        for rank in self.ranks:
            if rank.rank in leave_out:
                continue
            path = os.path.join(folder, name.format(rank.rank))
            if as_json:
                dump = rank.dump()
                for entry in dump["entries"]:
                    entry.pop("frames", None)
                    for key in ("time_discovered_started_ns", "time_discovered_completed_ns"):
                        entry[key] = entry[key] or 0
                dump["pg_status"] = {k: {n: str(v) for n, v in s.items()} for k, s in dump["pg_status"].items()}
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(dump, f)
            else:
                with open(path, "wb") as f:
                    pickle.dump(rank.dump(), f, protocol=protocol)


def steps(job, count, rng, group="0"):
    """Ordinary training: all-reduces of a few sizes and a barrier now and then."""
    for _ in range(count):
        job.all(group, sizes=(rng.choice((1048576, 262144, 4194304)),))
        if rng.random() < 0.1:
            job.all(group, name="all_reduce_barrier", sizes=(1,))


def large(folder, ranks, entries, seed, missing):
    """What the benchmark measures: `ranks` dumps of `entries` entries each; `missing` has not come to the last operation."""
    rng = random.Random(seed)
    job = Job(ranks, timing=True, ring=entries)
    sizes = [(rng.choice((1048576, 262144, 4194304)),) for _ in range(entries + 300)]
    for size in sizes:
        job.all(sizes=size, line=80 + len(size))
    for r in range(ranks):
        if r != missing:
            job.ranks[r].collective("0", state="scheduled", sizes=(4096,))
    job.write(folder)
