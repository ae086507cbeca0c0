"""What a callback costs in things that can be counted: system calls and bus locks (instructions: instructions.py).

usage: hot_path.py LIBRARY HOT_PATH_PROGRAM [--sanitized NAME]

Times are not tested (bench/README.md); counts are the same on every machine.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY = PROGRAM = SANITIZED = ""
CASES = ("start/stop pair", "collective, 16", "proxy operation")


def drive(case, units, plugin, before=(), stream="off"):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "RINGSCOPE_FLIGHT_DIR": folder, "RINGSCOPE_DIR": folder, "RINGSCOPE_TRACES": "0",
                       "RINGSCOPE_STREAM": stream}
        done = subprocess.run([*before, PROGRAM, "--drive", str(units), "--case", case, plugin], env=environment,
                              capture_output=True, text=True, timeout=200)
        if done.returncode != 0:
            raise AssertionError(f"{done.args}: {done.stderr}")
        return int(done.stdout.split()[0])


def tool(test, name):
    path = shutil.which(name)
    if path is None:
        test.skipTest(f"no {name} on this machine")
    return path


class Counted(unittest.TestCase):
    def setUp(self):
        if SANITIZED:
            self.skipTest(f"{SANITIZED} sanitizer build: its runtime adds calls and instructions")

    def test_no_system_call_on_the_callback_path(self):
        strace = tool(self, "strace")
        for case, stream in [(c, "off") for c in CASES] + [(c, "steps") for c in CASES[1:]]:
            with self.subTest(case=case, stream=stream), tempfile.TemporaryDirectory() as folder:
                log = os.path.join(folder, "calls")
                try:
                    callbacks = drive(case, 20000, LIBRARY, (strace, "-ff", "-o", log), stream)
                except AssertionError as refused:
                    if "ptrace" in str(refused):
                        self.skipTest(f"tracing is not allowed here: {refused}")
                    raise
                self.assertGreaterEqual(callbacks, 40000)
                self.assertEqual([], between_marks(folder))

    def test_the_counter_sees_a_system_call(self):
        """The check above would notice: a library call that is one system call, between the same marks."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "calls.1"), "w") as f:
                f.write('write(-1, "begin", 5) = -1 EBADF\nfutex(0x1, 2) = 0\nwrite(-1, "end", 3) = -1 EBADF\nexit(0)\n')
            self.assertEqual(["futex(0x1, 2) = 0"], between_marks(folder))

    def test_bus_locks_are_reported(self):
        listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-C", LIBRARY], capture_output=True, text=True,
                                 check=True).stdout
        found, function = {}, ""
        for line in listing.splitlines():
            head = re.match(r"^[0-9a-f]+ <(.+)>:$", line)
            if head:
                function = head.group(1)
            elif re.search(r"\t(lock |xchg .*\()", line):
                found[function] = found.get(function, 0) + 1
        print("\nfunctions with a locked instruction: " + (", ".join(sorted(found)) or "none"), file=sys.stderr)
        on_the_path = [f for f in found if re.search(r"(?i)step|kernelch|(start|stop|state)_?event", f)]
        self.assertFalse(on_the_path, "a locked instruction waits for other cores")


def between_marks(folder):
    """System calls of the thread that made the marks, between them."""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name)) as f:
            lines = f.read().splitlines()
        marks = [n for n, line in enumerate(lines) if "write(-1" in line]
        if marks:
            return lines[marks[0] + 1:marks[-1]]
    raise AssertionError("no marks in the trace")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    LIBRARY, PROGRAM = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    if "--sanitized" in sys.argv:
        at = sys.argv.index("--sanitized")
        SANITIZED = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    unittest.main()
