"""`ringscope snapshot`: running processes write a trace when they are asked, and it is said why one does not.

usage: snapshot_command.py RINGSCOPE LIBRARY HOT_PATH_PROGRAM
"""
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = LIBRARY = PROGRAM = ""
UNITS = "100000000"  # minutes: more than it gets to make


class Snapshot(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.flight, self.traces = (os.path.join(scratch.name, name) for name in ("flight", "traces"))
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("RINGSCOPE")}
        self.environment.update(RINGSCOPE_FLIGHT_DIR=self.flight, RINGSCOPE_DIR=self.traces, RINGSCOPE_JOB="j o/b",
                                RINGSCOPE_TRACES="8")  # the program has another default

    def job(self, **settings):
        """A process that records, once its flight file is there."""
        process = subprocess.Popen([PROGRAM, "--drive", UNITS, "--case", "collective, 16", LIBRARY], stdout=subprocess.DEVNULL,
                                   env={**self.environment, **settings})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _ in range(600):
            for path in glob.glob(f"{self.flight}/*-{process.pid}-*.flight"):
                with open(path, "rb") as f:
                    if f.read(8) == b"RNGSCOPE":  # written last
                        return process
            time.sleep(0.05)
        self.fail("no flight file")

    def ask(self, *arguments):
        return subprocess.run([TOOL, "snapshot", *arguments], capture_output=True, text=True, timeout=120, env=self.environment)

    def test_all_processes_of_the_default_directory(self):
        jobs = [self.job(RANK=str(r)) for r in range(2)]
        done = self.ask("--timeout=60")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(2, len(lines))
        for rank, process in enumerate(jobs):
            line = next(x for x in lines if x.startswith(f"rank {rank}, pid {process.pid}: "))
            path = line.split(": ", 1)[1]
            self.assertTrue(os.path.isfile(path), path)
            self.assertIn("/j_o_b.0/", path)
            self.assertTrue(path.endswith("-request.trace"), path)
            self.assertIsNone(process.poll(), "the job goes on")

    def test_one_process_again_and_again(self):
        first, second = self.job(RANK="0"), self.job(RANK="1")
        seen = set()
        for _ in range(2):
            done = self.ask(str(first.pid), "--timeout=60")
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            seen.add(done.stdout)
        self.assertEqual(2, len(seen), "another trace each time")
        self.assertFalse(glob.glob(f"{self.traces}/**/*pid{second.pid}-*", recursive=True))

    def test_a_directory_and_a_stopped_process(self):
        awake, stopped = self.job(RANK="0"), self.job(RANK="1")
        os.kill(stopped.pid, signal.SIGSTOP)
        self.environment["RINGSCOPE_FLIGHT_DIR"] = "/nowhere"
        done = self.ask(self.flight, "--timeout=3")
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertIn(f"pid {awake.pid}: {self.traces}", done.stdout)
        self.assertIn(f"pid {stopped.pid}: no trace: it does not run", done.stdout)

    def test_who_was_not_waited_for_is_not_called_stopped(self):
        running = self.job()
        done = self.ask(str(running.pid), "--timeout=0")
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertIn(f"pid {running.pid}: no trace: it has not written one in this time", done.stdout)

    def test_why_not(self):
        silent = self.job(RINGSCOPE_TRACES="0")
        done = self.ask(str(silent.pid))
        self.assertEqual(1, done.returncode)
        self.assertIn("RINGSCOPE_TRACES=0", done.stdout)
        no_place = self.job(RINGSCOPE_DIR="/dev/null/x")
        done = self.ask(str(no_place.pid), "--timeout=60")
        self.assertEqual(1, done.returncode)
        self.assertIn("could not be written to /dev/null/x", done.stdout)

    def test_nobody_to_ask(self):
        done = self.ask()
        self.assertEqual(66, done.returncode)
        self.assertIn(self.flight, done.stderr)
        gone = self.job()
        gone.kill()
        gone.wait()
        self.assertEqual(66, self.ask(str(gone.pid)).returncode, "the file of a dead process")
        self.job()
        done = self.ask("1")
        self.assertIn("pid 1 records nothing", done.stderr)
        self.assertNotEqual(0, done.returncode)

    def test_files_that_are_none(self):
        self.job()
        for name, content in (("empty", b""), ("short", b"RNGSCOPE"), ("zeros", bytes(8192)), ("magic", b"RNGSCOPE" + b"\xff" * 8192)):
            with open(f"{self.flight}/ringscope-x-{name}.flight", "wb") as f:
                f.write(content)
        os.mkfifo(f"{self.flight}/pipe.flight")
        os.symlink("/etc/hostname", f"{self.flight}/link.flight")
        done = self.ask("--timeout=60")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(1, len(done.stdout.splitlines()))

    def test_usage(self):
        for arguments in (["--timeout=soon"], ["--timeout=-1"], ["no-such-thing"], ["-1"], ["--timeot=3"]):
            self.assertEqual(64, self.ask(*arguments).returncode, arguments)
        self.assertEqual(0, self.ask("--help").returncode)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    TOOL, LIBRARY, PROGRAM = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
    unittest.main()
