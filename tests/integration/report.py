"""`ringscope diagnose --html=FILE` and `--format=html`: where the page goes, what it quotes of files, what happens when it cannot be written.

usage: report.py RINGSCOPE
"""
import gzip
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOOL = ""
FULL = "n1:70:88 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n"


class Report(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name

    def write(self, name, data):
        with open(os.path.join(self.dir, name), "wb") as f:
            f.write(data)
        return name

    def run_tool(self, *words, stdin=b""):
        return subprocess.run([TOOL, "diagnose", *words], cwd=self.dir, input=stdin, capture_output=True, timeout=60)

    def page(self, *paths, stdin=b""):
        done = self.run_tool("--format=html", *paths, stdin=stdin)
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        text = done.stdout.decode()
        self.assertTrue(text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"))
        return text

    def cited(self, page):
        """Number and text of each line that is cited."""
        return re.findall(r'class="row cited"><span class="no">(\d+)</span>([^\n]*)\n', page)

    def test_beside_the_text(self):
        self.write("job.log", b"hello\n" + FULL.encode())
        plain, both, page = self.run_tool("job.log"), self.run_tool("--html=out.html", "job.log"), self.run_tool("--format=html", "job.log")
        self.assertEqual((1, 1, 1), (plain.returncode, both.returncode, page.returncode))
        self.assertEqual(plain.stdout, both.stdout)
        with open(os.path.join(self.dir, "out.html"), "rb") as f:
            self.assertEqual(page.stdout, f.read())
        self.assertEqual(page.stdout, self.run_tool("--format=html", "job.log").stdout)

    def test_lines_in_their_place(self):
        text = "".join(f"line {i}\n" for i in range(1, 10)) + FULL + "behind <it>\n"
        self.write("plain.log", text.encode())
        self.write("packed.log.gz", gzip.compress(text.encode()))
        self.write("wide.log", text.encode("utf-16"))
        for name in ("plain.log", "packed.log.gz", "wide.log"):
            page = self.page(name)
            self.assertEqual([("10", FULL.strip())], self.cited(page)[:1], name)
            self.assertIn("line 9\n", page)
            self.assertIn("behind &lt;it&gt;", page)
            self.assertNotIn("line 6\n", page)

    def test_a_paste_cannot_be_read_again(self):
        self.write("(standard input)", b"another file of that name\n" * 9)
        page = self.page("-", stdin=b"\n\n" + FULL.encode())
        self.assertEqual([], self.cited(page))
        self.assertIn("No space left on device", page)
        self.assertNotIn("another file", page)

    def test_where_it_cannot_be_written(self):
        self.write("job.log", FULL.encode())
        for place in ("nowhere/out.html", ".", "/dev/full"):
            done = self.run_tool("--html=" + place, "job.log")
            self.assertEqual(70, done.returncode, place)
            self.assertIn(b"could not be written", done.stderr)
            self.assertIn(b"posix_fallocate", done.stdout)  # the diagnosis was not lost

    def test_nothing_to_read(self):
        done = self.run_tool("--format=html", "missing.log")
        self.assertEqual((66, b""), (done.returncode, done.stdout))


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
