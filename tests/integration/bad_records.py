"""Damaged, foreign, enormous and unreadable files beside good records: said with file, position and remedy, the rest still analysed.

usage: bad_records.py BUILD_TREE CAPTURE      (a capture in which the diagnosis of the whole evidence is certain)
"""
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import verdict

TREE = CAPTURE = None


def tool(*arguments, **more):
    return subprocess.run([os.path.join(TREE, "ringscope"), *arguments], capture_output=True, text=True, errors="replace",
                          timeout=60, **more)


class Records(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.whole = tempfile.TemporaryDirectory()
        verdict.replay(TREE, CAPTURE, cls.whole.name)
        cls.killed = tempfile.TemporaryDirectory()
        verdict.replay(TREE, CAPTURE, cls.killed.name, "--kill")

    @classmethod
    def tearDownClass(cls):
        cls.whole.cleanup()
        cls.killed.cleanup()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.out = os.path.join(scratch.name, "out")

    def copy(self, source):
        shutil.copytree(source.name, self.out)
        return self.out

    def records(self, suffix):
        found = sorted(glob.glob(f"{self.out}/**/*{suffix}", recursive=True))
        self.assertTrue(found, f"no *{suffix} in {self.out}")
        return found

    def record_of(self, rank):
        """All that a process left; a rank that waited for nobody has written no trace yet, only its flight file."""
        found = [f for s in (".trace", ".flight") for f in glob.glob(f"{self.out}/**/*{s}", recursive=True)
                 if f"rank{rank}-" in os.path.basename(f)]
        self.assertTrue(found, f"no record of rank {rank}")
        return found

    def assert_still_right(self, mention=None):
        d = verdict.diagnose(TREE, self.out)
        self.assertTrue(d.right_kind(CAPTURE) and d.right_who(CAPTURE), d.brief())
        self.assertEqual(1, d.status)
        if mention:
            self.assertIn(mention, d.stderr + d.text, "the bad file must be named")
        return d

    def test_bad_files_beside_good_ones(self):
        self.copy(self.whole)
        good = self.records(".trace")[0]
        with open(good, "rb") as f:
            content = f.read()
        cases = {
            "empty.trace": b"", "empty.flight": b"", "foreign.trace": b"\x7fELF" + bytes(5000), "foreign.flight": b"RIFF" * 2000,
            "text.trace": b"this is not a trace\n", "magic-only.trace": content[:8], "magic-only.flight": b"RNGSCOPE",
            "length-lies.trace": content[:8] + b"\xff\xff\xff\xff" + content[12:], "zeros.flight": bytes(4096),
        }
        for name, damaged in cases.items():
            with open(os.path.join(self.out, name), "wb") as f:
                f.write(damaged)
        with open(os.path.join(self.out, "enormous.trace"), "wb") as f:
            f.write(content[:8])
            f.truncate(1 << 40)
        with open(os.path.join(self.out, "enormous.flight"), "wb") as f:
            f.write(b"RNGSCOPE")
            f.truncate(1 << 40)
        os.mkfifo(os.path.join(self.out, "pipe.trace"))
        os.symlink("nowhere", os.path.join(self.out, "dangling.trace"))
        os.symlink(".", os.path.join(self.out, "loop"))
        d = self.assert_still_right()
        for name in [*cases, "enormous.trace", "enormous.flight"]:
            self.assertIn(name, d.stderr + d.text)

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root reads everything, and there is no setpriv")
    def test_unreadable_file(self):
        self.copy(self.whole)
        os.chmod(os.path.dirname(self.out), 0o755)
        bad = os.path.join(self.out, "secret.trace")
        with open(bad, "wb") as f:
            f.write(b"x")
        os.chmod(bad, 0)
        for folder, _, names in os.walk(self.out):
            os.chmod(folder, 0o755)
            for name in names:
                if name != "secret.trace":
                    os.chmod(os.path.join(folder, name), 0o644)
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        program = shutil.copy(os.path.join(TREE, "ringscope"), os.path.dirname(self.out))
        done = subprocess.run([*drop, program, "diagnose", "--format=json", self.out], capture_output=True, text=True, timeout=60)
        d = verdict.Diagnosis(done.returncode, done.stdout, done.stderr, {})
        self.assertTrue(d.right_kind(CAPTURE) and d.right_who(CAPTURE), d.brief())
        self.assertIn("secret.trace", d.stderr + d.text)

    def damage(self, source, rank, change):
        """Every record of `rank` is changed; the answer must stay right, or be undetermined."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.copy(source)
        for path in self.record_of(rank):
            with open(path, "rb") as f:
                content = bytearray(f.read())
            with open(path, "wb") as f:
                f.write(change(content))
        d = verdict.diagnose(TREE, self.out)
        self.assertIn(d.status, (1, 2), d.stderr)
        if not (d.right_kind(CAPTURE) and d.right_who(CAPTURE)):
            self.assertTrue(d.accuses_nobody(), f"accuses {d.brief()}")
        return d

    def test_truncated_records_accuse_nobody_wrongly(self):
        for source in (self.whole, self.killed):
            for rank in range(CAPTURE.processes):
                for share in (0.1, 0.5, 0.9):
                    with self.subTest(killed=source is self.killed, rank=rank, share=share):
                        self.damage(source, rank, lambda c, s=share: c[:int(len(c) * s)])

    def test_flipped_bits_accuse_nobody_wrongly(self):
        rng = random.Random(7)

        def flip(content, count):
            for _ in range(count):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            return content
        for n in range(12):
            with self.subTest(n=n):
                self.damage(self.whole, n % CAPTURE.processes, lambda c: flip(c, 3))

    def test_hostile_flight_files_never_crash_or_hang_the_reader(self):
        rng = random.Random(11)
        self.copy(self.killed)
        path = self.records(".flight")[0]
        with open(path, "rb") as f:
            good = f.read()
        for n in range(40):
            content = bytearray(good)
            if n % 2:
                for _ in range(2000):
                    at = rng.randrange(len(content) // 8) * 8
                    content[at:at + 8] = rng.choice([bytes(8), b"\xff" * 8, rng.randbytes(8)])
            else:
                at = rng.randrange(512)  # the header's numbers
                content[8 + at:16 + at] = rng.randbytes(8)
            with open(path, "wb") as f:
                f.write(content)
            with self.subTest(n=n):
                done = tool("diagnose", "--format=json", self.out)
                self.assertIn(done.returncode, (0, 1, 2), done.stderr[-300:])

    def test_nothing_but_bad_input(self):
        os.mkdir(self.out)
        with open(os.path.join(self.out, "only.trace"), "wb") as f:
            f.write(b"RNGTRC01\x05")
        done = tool("diagnose", self.out)
        self.assertNotEqual(0, done.returncode, "silence must not look like health")
        self.assertIn("only.trace", done.stderr + done.stdout)

    def test_no_input(self):
        os.mkdir(self.out)
        for path, says in ((self.out, "record"), (os.path.join(self.out, "missing"), "missing")):
            done = tool("diagnose", path)
            self.assertGreaterEqual(done.returncode, 64)
            self.assertIn(says, done.stderr)

    def test_usage_errors_suggest_the_nearest_name(self):
        for arguments, hint in ((["diagnos", "x"], "diagnose"), (["diagnose", "--formt=json", "x"], "format"), (["shw"], "show")):
            done = tool(*arguments)
            self.assertGreaterEqual(done.returncode, 64)
            self.assertIn(hint, done.stderr)
        self.assertEqual(64, tool("diagnose", "--format=yaml", "x").returncode)
        self.assertGreaterEqual(tool().returncode, 64)
        self.assertEqual(0, tool("--help").returncode)

    def test_show_reads_every_record(self):
        for source, suffix in ((self.whole, ".trace"), (self.killed, ".flight")):
            shutil.rmtree(self.out, ignore_errors=True)
            self.copy(source)
            for path in self.records(suffix):
                for form in ("text", "json"):
                    done = tool("show", f"--format={form}", path)
                    self.assertEqual(0, done.returncode, done.stderr)
                    self.assertGreater(len(done.stdout), 200)

    def test_no_colour_into_a_pipe(self):
        self.copy(self.whole)
        self.assertNotIn("\x1b", tool("diagnose", self.out).stdout)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    TREE = os.path.abspath(sys.argv.pop(1))
    CAPTURE = verdict.Capture(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
