"""`ringscope diagnose` over whatever people have: pastes, mixtures, junk. Bounded, never a crash, the rest still read.

usage: text_inputs.py RINGSCOPE
"""
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

TOOL = ""
FULL = "n1:70:88 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n"
MEMORY = 1 << 30  # address space that any of these inputs may take


class TextInputs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name

    def write(self, name, data):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path

    def diagnose(self, *paths, stdin=b"", timeout=60):
        limit = None if os.environ.get("RINGSCOPE_SANITIZED") else lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        done = subprocess.run([TOOL, "diagnose", "--format=json", *paths], input=stdin, capture_output=True, timeout=timeout,
                              preexec_fn=limit)
        self.assertIn(done.returncode, (0, 1, 2, 65, 66), done.stderr[-400:])
        return done.returncode, json.loads(done.stdout), done.stderr.decode()

    def assertFull(self, diagnosis):
        self.assertEqual("resource_exhausted", diagnosis["findings"][0]["kind"])

    def test_a_paste_on_standard_input(self):
        code, diagnosis, _ = self.diagnose("-", stdin=b"what is this?\n" + FULL.encode())
        self.assertEqual(1, code)
        self.assertFull(diagnosis)
        evidence = diagnosis["findings"][0]["evidence"][0]
        self.assertEqual(("(standard input)", 2), (evidence["source"], evidence["line"]))

    def test_an_empty_paste(self):
        code, diagnosis, _ = self.diagnose("-")
        self.assertIn(code, (65, 66))
        self.assertEqual("unknown", diagnosis["state"])
        self.assertEqual([], diagnosis["findings"])

    def test_a_directory_of_everything(self):
        self.write("host1/job.log", "hello\n" + FULL)
        self.write("host1/core", os.urandom(200000))
        self.write("host1/empty", "")
        self.write("photo.jpg", b"\xff\xd8\xff\xe0" + os.urandom(5000))
        os.mkfifo(os.path.join(self.dir, "pipe"))
        os.symlink("/proc", os.path.join(self.dir, "link"))
        os.symlink("nowhere", os.path.join(self.dir, "dangling"))
        code, diagnosis, _ = self.diagnose(self.dir)
        self.assertEqual(1, code)
        self.assertFull(diagnosis)
        said = " ".join(diagnosis["not_seen"])
        self.assertIn("nothing that was recognised", said)

    def test_many_files(self):
        for i in range(20000):
            self.write(f"{i % 100}/notes-{i}.txt", f"note {i}\n")
        self.write("50/nccl.log", FULL)
        _, diagnosis, _ = self.diagnose(self.dir, timeout=120)
        self.assertFull(diagnosis)
        self.assertLess(len(json.dumps(diagnosis["not_seen"])), 5000)

    def test_a_file_without_newlines(self):
        self.write("a.log", b"x" * (200 << 20))
        self.write("b.log", FULL)
        _, diagnosis, _ = self.diagnose(self.dir)
        self.assertFull(diagnosis)

    def test_other_encodings(self):
        self.write("utf16.log", ("\ufeff" + FULL).encode("utf-16-le"))
        self.write("bom.log", "\ufeff" + FULL)
        self.write("latin1.log", "Rückmeldung von gerät\n".encode("latin-1") + FULL.encode())
        _, diagnosis, _ = self.diagnose(self.dir)
        sources = {os.path.basename(e["source"]) for e in diagnosis["findings"][0]["evidence"]}
        self.assertEqual({"utf16.log", "bom.log", "latin1.log"}, sources)

    def test_a_bomb(self):
        self.write("bomb.gz", gzip.compress(b"\0" * (300 << 20)))
        self.write("lines.gz", gzip.compress(b"no\n" * (40 << 20)))
        self.write("b.log", FULL)
        _, diagnosis, _ = self.diagnose(self.dir, timeout=120)
        self.assertFull(diagnosis)
        self.assertIn("unpacks to more than", " ".join(diagnosis["not_seen"]))

    def test_unreadable(self):
        if os.geteuid() == 0:
            self.skipTest("SKIPPED: root reads everything")
        os.chmod(self.write("secret.log", FULL), 0)
        self.write("b.log", FULL)
        _, diagnosis, _ = self.diagnose(self.dir)
        self.assertFull(diagnosis)
        self.assertIn("secret.log", " ".join(diagnosis["not_seen"]))

    def test_names_that_are_no_text(self):
        self.write("a\x1b[31m\n.log", FULL)
        _, diagnosis, _ = self.diagnose(self.dir)
        self.assertFull(diagnosis)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    unittest.main(verbosity=2)
