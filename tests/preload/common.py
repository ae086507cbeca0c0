"""Shared by the tests of this folder."""
import glob
import json
import os
import subprocess
import tempfile


class Place:
    """A scratch directory with a folder for traces and one for flight files; and how to run something in it."""

    def __init__(self, tree):
        self.tree = os.path.abspath(tree)
        self.library = os.path.join(self.tree, "libringscope.so")
        self.newer = os.path.join(self.tree, "libringscope-newer.so")
        self.tool = os.path.join(self.tree, "ringscope")
        self.scratch = tempfile.TemporaryDirectory()
        self.root = self.scratch.name
        self.traces = os.path.join(self.root, "traces")
        self.flight = os.path.join(self.root, "flight")

    def environment(self, preload=True, **more):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "RINGSCOPE_", "LD_PRELOAD"))}
        own = {"RINGSCOPE_DIR": self.traces, "RINGSCOPE_FLIGHT_DIR": self.flight}
        if preload:
            own["LD_PRELOAD"] = f"{self.library}:{self.newer}"
        return {**keep, **own, **more}

    def run(self, command, preload=True, timeout=120, **more):
        return subprocess.run(command, env=self.environment(preload, **more), capture_output=True, timeout=timeout)

    def left(self):
        return sorted(f for f in glob.glob(os.path.join(self.root, "**"), recursive=True) if os.path.isfile(f))

    def records(self):
        """Traces and flight files as JSON."""
        found = []
        for path in self.left():
            if path.endswith((".trace", ".flight")):
                done = subprocess.run([self.tool, "show", "--format=json", path], capture_output=True, text=True, check=True)
                found.append(json.loads(done.stdout))
        return found


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")
