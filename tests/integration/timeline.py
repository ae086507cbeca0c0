"""`ringscope timeline`: both formats hold the same slices, balanced and ordered; flows have two ends; what is cut is said.

usage: timeline.py RINGSCOPE SOURCE_TREE PROTOC [--perfetto]

--perfetto: against Perfetto's own schema only, where its Python package is installed (or RINGSCOPE_PERFETTO_PB2 names its
perfetto_trace_pb2.py). Skipped with a message where it is not.
"""
import ast
import collections
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOOL = SOURCE = PROTOC = ""
STREAMED, PLAIN, KILLED = "edge_stalls_streamed", "healthy_dp", "dp_killed"


def schema_of_perfetto():
    path = os.environ.get("RINGSCOPE_PERFETTO_PB2")
    spec = importlib.util.find_spec("perfetto")
    if not path and spec and spec.submodule_search_locations:
        path = os.path.join(list(spec.submodule_search_locations)[0], "protos/perfetto/trace/perfetto_trace_pb2.py")
    if not path or not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as f:
        for node in ast.walk(ast.parse(f.read())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile" and isinstance(node.args[0], ast.Constant):
                return node.args[0].value
    return None


class Timeline(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name

    def make(self, scenario, *flags, code=0):
        done = subprocess.run([TOOL, "timeline", *flags, os.path.join(SOURCE, "tests/compat/v2", scenario)], capture_output=True, timeout=120)
        self.assertEqual(code, done.returncode, done.stderr)
        return done.stdout, done.stderr.decode()

    def decode(self, data, words):
        done = subprocess.run([PROTOC, *words], input=data, capture_output=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout.decode()

    def own(self, data):
        return self.decode(data, ["--decode=ringscope.perfetto.Trace", "-I", SOURCE, "proto/perfetto.proto"])

    def slices_of_chrome(self, data):
        document = json.loads(data)
        names, open_, slices, flows = {}, collections.defaultdict(list), [], collections.defaultdict(list)
        last = collections.defaultdict(float)
        for e in document["traceEvents"]:
            key = (e["pid"], e.get("tid"))
            if e["ph"] == "M":
                if e["name"] in ("process_name", "thread_name"):
                    names[(e["name"], *key)] = e["args"]["name"]
            elif e["ph"] == "B":
                self.assertEqual([], open_[key], "slices of one lane overlap")
                self.assertGreaterEqual(e["ts"], last[key])
                open_[key].append(e)
            elif e["ph"] == "E":
                begun = open_[key].pop()
                self.assertGreaterEqual(e["ts"], begun["ts"])
                last[key] = e["ts"]
                slices.append((names[("process_name", e["pid"], None)], names[("thread_name", *key)], begun["name"], begun["ts"], e["ts"]))
            elif e["ph"] in "sf":
                flows[e["id"]].append((e["ph"], e["pid"], e["ts"]))
        self.assertFalse([k for k, v in open_.items() if v], "a slice without an end")
        return document, slices, flows

    def test_both_formats_say_the_same(self):
        for scenario in (STREAMED, PLAIN, KILLED):
            with self.subTest(scenario=scenario):
                _, slices, _ = self.slices_of_chrome(self.make(scenario, "--format=chrome")[0])
                self.assertGreater(len(slices), 20)
                text = self.own(self.make(scenario)[0])
                self.assertFalse(re.findall(r"^\s*\d+[:{ ]", text, re.M), "fields that the schema does not know")
                self.assertEqual(len(slices), len(re.findall("type: SLICE_BEGIN", text)))
                self.assertEqual(len(slices), len(re.findall("type: SLICE_END", text)))
                names = collections.Counter(s[2] for s in slices)
                told = collections.Counter(re.findall(r'type: SLICE_BEGIN\n.*\n.*\n\s+name: "(.*)"', text))
                self.assertEqual(names, told)
                self.assertEqual(sorted(re.findall(r'process_name: "rank (\d+)', text), key=int), re.findall(r'process_name: "rank (\d+)', text))
                self.assertGreaterEqual(len(re.findall("process_name:", text)), 2)

    def test_times_are_the_jobs(self):
        document, slices, _ = self.slices_of_chrome(self.make(PLAIN, "--format=chrome")[0])
        first = int(document["otherData"]["first_ns"])
        self.assertGreater(first, 1_500_000_000 * 10**9, "ns since 1970")
        # The same operation of all ranks: between the first call and the last kernel's end lies less than the run.
        begins = collections.defaultdict(dict)
        for process, lane, name, begin, end in slices:
            if lane.startswith("GPU") and name.startswith("AllReduce"):
                begins[(lane.split(", stream")[0], name)].setdefault(process, (begin, end))
        together = [v for v in begins.values() if len(v) > 1]
        self.assertGreater(len(together), 3)
        for ranks in together:
            self.assertLess(max(b for b, _ in ranks.values()), max(e for _, e in ranks.values()) + 1e6)

    def test_streamed_steps_and_their_flows(self):
        _, slices, flows = self.slices_of_chrome(self.make(STREAMED, "--format=chrome")[0])
        lanes = {s[1] for s in slices}
        self.assertTrue([lane for lane in lanes if lane.startswith("send to ")], lanes)
        self.assertTrue([lane for lane in lanes if lane.startswith("receive from ")], lanes)
        self.assertGreater(len(flows), 10)
        for ends in flows.values():
            self.assertEqual(["f", "s"], sorted(e[0] for e in ends))
            self.assertEqual(2, len({e[1] for e in ends}), "a flow leads to another rank")
            late = {e[0]: e[2] for e in ends}
            self.assertLessEqual(late["s"], late["f"] + 1e5, "received before it was sent")

    def test_the_cut_is_said(self):
        everything = self.slices_of_chrome(self.make(STREAMED, "--format=chrome")[0])[1]
        data, said = self.make(STREAMED, "--format=chrome", "--max=50")
        document, slices, _ = self.slices_of_chrome(data)
        self.assertEqual(50, len(slices))
        note = f"{len(everything) - 50} older slices were left out"
        self.assertIn(note, said)
        self.assertTrue([n for n in document["otherData"]["notes"] if note in n])
        self.assertTrue([e for e in document["traceEvents"] if e["ph"] == "i" and note in e["name"]])
        self.assertIn(note, self.own(self.make(STREAMED, "--max=50")[0]))
        newest = sorted(max(s[4] for s in v) for v in (everything, slices))
        self.assertGreater(newest[0], 0)

    def test_bad_words_and_inputs(self):
        self.make(PLAIN, "--max=0", code=64)
        self.make(PLAIN, "--max=x", code=64)
        self.make(PLAIN, "--out=/nonexistent/x", code=70)
        self.make("no-such-scenario", code=66)

    def test_a_file(self):
        out = os.path.join(self.dir, "job.pftrace")
        self.make(PLAIN, f"--out={out}")
        with open(out, "rb") as f:
            self.assertEqual(f.read(), self.make(PLAIN)[0])


class Perfetto(Timeline):
    """Instead of the above."""

    def test_perfettos_own_schema(self):
        serialized = schema_of_perfetto()
        if serialized is None:
            self.skipTest("SKIPPED: no Python package perfetto; set RINGSCOPE_PERFETTO_PB2 to its perfetto_trace_pb2.py")
        descriptors = os.path.join(self.dir, "set")
        size, length = len(serialized), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        with open(descriptors, "wb") as f:
            f.write(b"\x0a" + length + bytes([size]) + serialized)
        for scenario in (STREAMED, PLAIN, KILLED):
            data = self.make(scenario)[0]
            text = self.decode(data, [f"--descriptor_set_in={descriptors}", "--decode=perfetto.protos.Trace"])
            self.assertFalse(re.findall(r"^\s*\d+[:{ ].*", text, re.M)[:3], "fields that Perfetto does not know")
            self.assertEqual(len(re.findall("SLICE_BEGIN", self.own(data))), len(re.findall("TYPE_SLICE_BEGIN", text)))
            self.assertIn("PROCESS_ORDERING_EXPLICIT", text)
            self.assertIn("THREAD_ORDERING_EXPLICIT", text)


if __name__ == "__main__":
    own = "--perfetto" in sys.argv
    TOOL, SOURCE, PROTOC = [a for a in sys.argv[1:] if a != "--perfetto"]
    name = "Perfetto.test_perfettos_own_schema" if own else "Timeline"
    unittest.main(argv=[sys.argv[0], "-v", name])
