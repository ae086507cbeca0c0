"""Records that cannot be kept where they should be: the job runs on, one line on stderr, recording goes on in memory.

usage: bad_places.py LIBRARY HOT_PATH_PROGRAM

A small program calls the library as NCCL would (bench/hot_path --drive), in a mount namespace of its own where a full or
read-only file system is wanted.
"""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY = PROGRAM = ""
UNITS = 300
CAN_MOUNT = os.geteuid() == 0 and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
                                                 capture_output=True).returncode == 0


class Place(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.good = os.path.join(self.folder.name, "good")
        self.bad = os.path.join(self.folder.name, "bad")
        os.mkdir(self.good)
        os.mkdir(self.bad)

    def job(self, flight, traces, mount="", after="", **settings):
        """Runs the program; `mount`: mount options of a tmpfs at self.bad. Returns (callbacks, lines on stderr, output of `after`)."""
        command = f'"$0" --drive {UNITS} --case collective,\\ 2 "$1"'
        if mount:
            command = f'mount -t tmpfs -o mode=0700,{mount} none {self.bad} && {{ {self.fill} }} && {command} && {{ {after or ":"}; }}'
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RINGSCOPE")}
        environment.update(RINGSCOPE_FLIGHT_DIR=flight, RINGSCOPE_DIR=traces, RINGSCOPE_TRACES="8", **settings)
        done = subprocess.run([*(["unshare", "-m"] if mount else []), "bash", "-c", command, PROGRAM, LIBRARY],
                              env=environment, cwd=self.good, capture_output=True, text=True, timeout=60)
        self.assertEqual(0, done.returncode, done.stderr)
        first, _, rest = done.stdout.partition("\n")
        return int(first.split()[0]), [line for line in done.stderr.splitlines() if line], rest.split()

    fill = ":;"

    def check(self, callbacks, lines, at_most=1):
        self.assertGreater(callbacks, UNITS * 10)
        self.assertLessEqual(len(lines), at_most, lines)
        self.assertTrue(all("ringscope" in line.lower() for line in lines), lines)


class BadPlaces(Place):
    def test_good_places(self):
        callbacks, lines, _ = self.job(self.good, os.path.join(self.good, "traces"))
        self.check(callbacks, lines, at_most=0)
        self.assertTrue(glob.glob(self.good + "/traces/**/*.trace", recursive=True))
        self.assertFalse(glob.glob(self.good + "/**/*.flight", recursive=True), "removed after a clean end")

    def test_flight_folder_under_a_file(self):
        callbacks, lines, _ = self.job("/dev/null/x", self.good)
        self.check(callbacks, lines)
        self.assertEqual(1, len(lines), "a record that does not survive a kill must be said")
        self.assertTrue(glob.glob(self.good + "/**/*.trace", recursive=True), "traces from private memory")

    def test_flight_folder_missing_is_made(self):
        callbacks, lines, _ = self.job(os.path.join(self.good, "a", "flight"), self.good)
        self.check(callbacks, lines)

    def test_trace_folder_under_a_file(self):
        callbacks, lines, _ = self.job(self.good, "/dev/null/x")
        self.check(callbacks, lines)
        self.assertEqual(1, len(lines))
        self.assertTrue(glob.glob(self.good + "/**/*.flight", recursive=True), "the only record left must stay")

    def test_both_gone(self):
        callbacks, lines, _ = self.job("/dev/null/x", "/dev/null/y")
        self.check(callbacks, lines, at_most=2)

    def test_relative_hostile_and_long_names(self):
        for name in ("x" * 5000, "a\nb", "%s%n%s%n", "", "../" * 100):
            with self.subTest(name=name[:20]):
                callbacks, lines, _ = self.job(name or self.good, os.path.join(self.good, "t"))
                self.check(callbacks, lines, at_most=2)

    def test_bad_values(self):
        callbacks, lines, _ = self.job(self.good, self.good, RINGSCOPE_STALL_SECONDS="soon")
        self.check(callbacks, lines)
        self.assertEqual(1, len(lines))
        self.assertIn("RINGSCOPE_STALL_SECONDS", lines[0])

    def test_switched_off(self):
        callbacks, lines, _ = self.job(self.good, self.good, RINGSCOPE="0")
        self.assertEqual([], lines)
        self.assertEqual([], os.listdir(self.good))


@unittest.skipUnless(CAN_MOUNT, "needs root and mount namespaces")
class FullAndReadOnly(Place):
    def test_full_flight_folder(self):
        self.fill = f"head -c 10000000 /dev/zero > {self.bad}/filler 2> /dev/null || true;"
        callbacks, lines, _ = self.job(self.bad, self.good, "size=8m")
        self.check(callbacks, lines)
        self.assertTrue(glob.glob(self.good + "/**/*.trace", recursive=True))

    def test_read_only_flight_folder(self):
        callbacks, lines, _ = self.job(self.bad, self.good, "ro")
        self.check(callbacks, lines)
        self.assertEqual(1, len(lines))

    def test_full_disk_under_a_stream(self):
        self.fill = f"head -c 10000000 /dev/zero > {self.bad}/filler 2> /dev/null || true;"
        callbacks, lines, left = self.job(self.good, self.bad, "size=64k", f"find {self.bad} -name '*.stream' -size +1k",
                                          RINGSCOPE_STREAM="ops")
        self.check(callbacks, lines, at_most=2)
        self.assertEqual(1, sum("streaming is off" in line for line in lines), lines)
        self.assertEqual([], left, "no half of a chunk on a full disk")

    def test_full_trace_folder(self):
        self.fill = f"head -c 10000000 /dev/zero > {self.bad}/filler 2> /dev/null || true;"
        callbacks, lines, left = self.job(self.good, self.bad, "size=64k", f"find {self.bad} -name '*.tmp'")
        self.check(callbacks, lines)
        self.assertEqual(1, len(lines))
        self.assertEqual([], left, "half-written files must not be left on a full disk")
        self.assertTrue(glob.glob(self.good + "/**/*.flight", recursive=True), "the only record left must stay")

    def test_read_only_trace_folder(self):
        callbacks, lines, _ = self.job(self.good, self.bad, "ro")
        self.check(callbacks, lines)
        self.assertEqual(1, len(lines))

    def test_small_shared_memory_leaves_room_for_nccl(self):
        """Eight ranks in a container's default of 64 MiB: NCCL's own segments need most of it."""
        one = f'"$0" --drive 8000000 --case pair "$1" > {self.good}/$i.out'
        command = (f"mount -t tmpfs -o mode=0700,size=64m none {self.bad} && for i in 1 2 3 4 5 6 7 8; do {one} & done; sleep 1; "
                   f"df --output=used -B1 {self.bad} | tail -n 1; find {self.good} {self.bad} -name '*.flight' | wc -l; wait")
        environment = {**os.environ, "RINGSCOPE_FLIGHT_DIR": self.bad, "RINGSCOPE_DIR": self.good}
        done = subprocess.run(["unshare", "-m", "bash", "-c", command, PROGRAM, LIBRARY], env=environment,
                              capture_output=True, text=True, timeout=60)
        used, files = map(int, done.stdout.split())
        print(f"\n8 processes: {files} flight files, {used / 2**20:.1f} of 64 MiB used", file=sys.stderr)
        self.assertLessEqual(used, 32 << 20)
        self.assertGreater(files, 0, done.stderr)
        self.assertEqual(8, sum(os.path.getsize(f) > 10 for f in glob.glob(self.good + "/*.out")))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    LIBRARY, PROGRAM = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    unittest.main()
