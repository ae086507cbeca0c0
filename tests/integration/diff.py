"""`ringscope diff`: what changed between two runs of real NCCL, and what it does with inputs that are none.

usage: diff.py RINGSCOPE TOPOLOGIES
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL, TOPOLOGIES = sys.argv[1:3]


def run(*words):
    return subprocess.run([TOOL, "diff", *words], capture_output=True, text=True, timeout=120)


def changes(good, bad):
    done = run("--format=json", os.path.join(TOPOLOGIES, good), os.path.join(TOPOLOGIES, bad))
    return json.loads(done.stdout), done.returncode


def weighty(comparison):
    # The file that the topology was made from differs in every pair.
    return [c for c in comparison["changes"] if c["weight"] == "can_explain" and c["name"] != "NCCL_TOPO_FILE"]


class Diff(unittest.TestCase):
    def test_equal_runs(self):
        for name in ("nvswitch_full", "dgx1v_full", "two_full_gdr"):
            comparison, status = changes(name, name)
            self.assertEqual((comparison["changes"], status), ([], 0), name)

    def test_one_lane_of_one_gpu(self):
        comparison, status = changes("nvswitch_full", "nvswitch_gpu3_17lanes")
        self.assertEqual(status, 1)
        lanes = [c for c in weighty(comparison) if "GPU 3" in c["subjects"]]
        self.assertEqual([(c["good"], c["bad"]) for c in lanes], [("18 lanes", "17 lanes")])
        self.assertTrue(all(c["bad_source"] for c in weighty(comparison)))

    def test_gpu_without_links(self):
        comparison, _ = changes("dgx1v_full", "dgx1v_gpu5_nolinks")
        paths = [c for c in weighty(comparison) if c["topic"] == "transport"]
        self.assertTrue(paths and all("5->" in s or "->5" in s for c in paths for s in c["subjects"]), paths)
        self.assertIn(("12", "2"), [(c["good"], c["bad"]) for c in comparison["changes"] if c["name"] == "collective channels"])

    def test_setting(self):
        comparison, _ = changes("dgx1v_full", "dgx1v_full_P2P_DISABLE")
        self.assertIn(("NCCL_P2P_DISABLE", "absent", "1"), [(c["name"], c["good"], c["bad"]) for c in weighty(comparison)])
        self.assertEqual(comparison["changes"][0]["topic"], "transport")

    def test_backwards_it_is_better(self):
        comparison, _ = changes("nvswitch_gpu3_nolanes", "nvswitch_full")
        self.assertNotIn("transport", [c["topic"] for c in weighty(comparison)])

    def test_gpudirect_lost(self):
        comparison, _ = changes("two_full_gdr", "two_full_nogdr")
        paths = [c for c in weighty(comparison) if c["topic"] == "transport"]
        self.assertTrue(any("GDRDMA" in c["good"] and "GDRDMA" not in c["bad"] for c in paths), paths)

    def test_text(self):
        done = run(os.path.join(TOPOLOGIES, "nvswitch_full"), os.path.join(TOPOLOGIES, "nvswitch_gpu3_nolanes"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("Can explain a worse run", done.stdout)
        self.assertIn("NET/PIX", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_wrong_use(self):
        good = os.path.join(TOPOLOGIES, "nvswitch_full")
        self.assertEqual(run().returncode, 64)
        self.assertEqual(run(good).returncode, 64)
        self.assertEqual(run(good, "/does/not/exist").returncode, 66)
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(run(good, empty).returncode, 66)
            with open(os.path.join(empty, "junk.bin"), "wb") as f:
                f.write(os.urandom(4096))
            done = run(good, empty)
            self.assertIn(done.returncode, (65, 66))
            self.assertIn("bad run", done.stderr)

    def test_hostile_names(self):
        with tempfile.TemporaryDirectory() as run_dir:
            for side, value in (("a", "1"), ("b", "\x1b[31m$(reboot)")):
                os.mkdir(os.path.join(run_dir, side))
                with open(os.path.join(run_dir, side, "n.log"), "w") as f:
                    f.write(f"n:1:1 [0] NCCL INFO NCCL_ALGO set by environment to {value}.\n")
            done = run(os.path.join(run_dir, "a"), os.path.join(run_dir, "b"))
            self.assertNotIn("\x1b", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
