"""Records of former releases are read, whole, and mean what they meant.

usage: compat_test.py RINGSCOPE_TOOL
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = None
CONFIDENCES = ["possible", "probable", "established"]


def diagnose(folder):
    parts = [os.path.join(folder, part) for part in ("traces", "flight") if os.path.isdir(os.path.join(folder, part))]
    said = subprocess.run([TOOL, "diagnose", "--format=json", *parts], capture_output=True, text=True, timeout=60)
    return said.returncode, json.loads(said.stdout) if said.stdout else {}, said.stderr


def faults(folder, expected):
    """What differs from what is expected of a case."""
    status, verdict, said = diagnose(folder)
    if not verdict:
        return [f"no verdict: {said}"]
    found = [f for f in verdict["findings"] if f["kind"] != "none"]
    first = found[0] if found else {"kind": "none", "confidence": "", "who": {"ranks": [], "edges": []}}
    have = {"status": status, "state": verdict["state"], "ranks_seen": verdict["ranks_seen"], "files": len(verdict["inputs"]), "kind": first["kind"],
            "ranks": [int(r) for r in first["who"]["ranks"]], "edges": [[int(e["from"]), int(e["to"])] for e in first["who"]["edges"]]}
    wrong = [f"{key} is {have[key]}, was {value}" for key, value in expected.items() if key in have and have[key] != value]
    if found and CONFIDENCES.index(first["confidence"]) < CONFIDENCES.index(expected.get("at_least", "possible")):
        wrong.append(f"confidence is {first['confidence']}, was {expected['at_least']}")
    wrong += [f"not seen: {text}" for text in verdict["not_seen"] if re.search("damaged|unknown|not recognised|cannot|version", text)]
    return wrong


class Records(unittest.TestCase):
    def cases(self):
        cases = sorted(glob.glob(os.path.join(HERE, "v*", "*", "")))
        self.assertGreaterEqual(len(cases), 4)
        for case in cases:
            with open(os.path.join(case, "expected.json"), encoding="utf-8") as f:
                yield case, json.load(f)

    def test_the_current_format_is_here(self):
        with open(os.path.join(HERE, "..", "..", "recorder", "flight", "format.h"), encoding="utf-8") as f:
            version = re.search(r"kVersion = (\d+);", f.read()).group(1)
        self.assertTrue(glob.glob(os.path.join(HERE, "v" + version, "*", "flight", "*.flight*")), f"no records of version {version}")

    def test_every_case_means_what_it_meant(self):
        for case, expected in self.cases():
            with self.subTest(case=os.path.relpath(case, HERE)):
                self.assertEqual([], faults(case, expected))

    def test_every_file_can_be_shown(self):
        for case, _ in self.cases():
            for path in glob.glob(os.path.join(case, "**", "*"), recursive=True):
                if os.path.isfile(path) and not path.endswith("expected.json"):
                    said = subprocess.run([TOOL, "show", path], capture_output=True, text=True, timeout=60)
                    self.assertEqual(0, said.returncode, f"{path}: {said.stderr}")
                    self.assertIn(" of 4", said.stdout, path)

    def test_a_case_that_lacks_a_file_is_noticed(self):
        for case, expected in self.cases():
            for part in ("traces", "flight"):
                if not os.path.isdir(os.path.join(case, part)):
                    continue
                with tempfile.TemporaryDirectory() as scratch:
                    copy = os.path.join(scratch, "case")
                    shutil.copytree(case, copy)
                    files = sorted(glob.glob(os.path.join(copy, part, "**", "*.*"), recursive=True))
                    os.remove(next(path for path in files if os.path.isfile(path)))
                    self.assertNotEqual([], faults(copy, expected), f"{case}: {part}")


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
