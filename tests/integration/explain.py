"""`ringscope explain`: ids, numbers, lines, words, standard input; what it says when nothing fits.

usage: explain.py RINGSCOPE
"""
import json
import subprocess
import sys
import unittest

LINE = ("node7:4410:4420 [3] transport/net_ib.cc:1909 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<48812> with status=12 opcode=0 len=0 "
        "vendor err 129 (Recv)")


def explain(*words, stdin=""):
    return subprocess.run([RINGSCOPE, "explain", *words], input=stdin, capture_output=True, text=True, errors="replace", check=False)


class Explain(unittest.TestCase):
    def test_an_id_in_any_case(self):
        for name in ("HW-01", "hw-01"):
            done = explain(name)
            self.assertEqual(done.returncode, 0)
            self.assertIn("HW-01  NVLink fatal error", done.stdout)
            self.assertIn("What to do, in this order", done.stdout)
        self.assertEqual(json.loads(explain("HW-01", "--format=json").stdout)["id"], "HW-01")
        self.assertGreater(len(explain("HW-01", "--all").stdout), len(explain("HW-01").stdout))

    def test_the_list_names_every_entry(self):
        done = explain("--list")
        self.assertEqual(done.returncode, 0)
        for name in ("HW-01", "NET-10", "UC-11", "SEED-A"):
            self.assertIn(f"  {name} ", done.stdout)

    def test_a_line_gives_candidates_and_what_tells_them_apart(self):
        for done in (explain(LINE), explain("-", stdin=f"step 12 loss 3.1\n{LINE}\n")):
            self.assertEqual(done.returncode, 0)
            self.assertLess(done.stdout.index("NET-01"), done.stdout.index("NET-03"))
            self.assertIn("told apart by", done.stdout)

    def test_numbers_of_the_driver(self):
        self.assertIn("HW-05", explain("Xid 79").stdout)
        self.assertIn("not in the table", explain("xid 99999").stdout)

    def test_words(self):
        self.assertIn("NC-08", explain("/dev/shm too small").stdout)

    def test_what_fits_nothing(self):
        self.assertEqual(explain("zzzz qqqq").returncode, 2)
        self.assertEqual(explain().returncode, 64)
        self.assertEqual(explain("   ").returncode, 64)
        done = explain("HW-99")
        self.assertEqual(done.returncode, 64)
        self.assertIn("did you mean HW-0", done.stderr)

    def test_text_that_means_harm_drives_no_terminal(self):
        done = explain("-", stdin="NCCL WARN \x1b]0;owned\x07 Cuda failure 'out of memory'\n\x00\xff")
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn(done.returncode, (0, 2))
        self.assertIn(explain("-", stdin="x" * 3000000).returncode, (0, 2))


if __name__ == "__main__":
    RINGSCOPE = sys.argv.pop(1)
    unittest.main()
