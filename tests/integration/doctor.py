"""`ringscope doctor`: the built program on the stand-in of NVML; exit codes, baselines, JSON, the Slurm prolog.

usage: doctor.py BUILD SOURCE
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = "", ""
GPU_CHECKS = "gpus,nvlink,fabric,peers,pcie,memory,throttle,processes"


class Doctor(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = self.path("state")
        self.happens("")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def happens(self, text):
        """In the words of tests/sim/machine/README.md."""
        with open(self.state, "w", encoding="utf-8") as f:
            f.write(text)

    def environment(self, **more):
        # This machine's own settings must not matter.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "CUDA_", "RINGSCOPE", "LD_", "GLOO_"))}
        return {**kept, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), "RINGSCOPE_SIM_MACHINE_STATE": self.state,
                "RINGSCOPE_SIM_MACHINE": os.path.join(SOURCE, "tests/sim/machines/hgx_h100.machine"), **more}

    def doctor(self, *words, **environment):
        return subprocess.run([os.path.join(BUILD, "ringscope"), "doctor", "--seconds=30", *words], env=self.environment(**environment),
                              capture_output=True, text=True, check=False, timeout=120)

    def test_a_healthy_machine(self):
        done = self.doctor(f"--only={GPU_CHECKS}")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn(": nothing wrong found\n", done.stdout)
        self.assertIn("\nok       nvlink      18 NVLinks active on each GPU\n", done.stdout)
        self.assertEqual("", self.doctor(f"--only={GPU_CHECKS}", "--quiet").stdout.partition("\n")[2])

    def test_one_lane_down_against_the_baseline(self):
        base = self.path("good.json")
        self.assertEqual(0, self.doctor(f"--only={GPU_CHECKS}", f"--save={base}").returncode)
        self.assertEqual(0, self.doctor(f"--only={GPU_CHECKS}", f"--compare={base}").returncode)
        self.happens("lanes 3 17\n")
        done = self.doctor(f"--only={GPU_CHECKS}", f"--compare={base}")
        self.assertEqual(1, done.returncode)
        first = done.stdout.split("\n\n")[1]
        self.assertIn("FAILED   nvlink      GPU 3 (0000:61:00.0): 17 NVLinks active (down: 17)\n", first)
        self.assertIn("(baseline: 18)", first)
        self.assertIn("see: ringscope explain HW-02", first)
        page = subprocess.run([os.path.join(BUILD, "ringscope"), "explain", "HW-02"], capture_output=True, text=True, check=True)
        self.assertIn("HW-02", page.stdout)

    def test_the_fabric_manager_was_not_started(self):
        self.happens("".join(f"fabric {i} 1\n" for i in range(8)))
        done = self.doctor(f"--only={GPU_CHECKS}")
        self.assertEqual(1, done.returncode)
        self.assertEqual(1, done.stdout.count("FAILED"))
        self.assertEqual(8, done.stdout.count("fabric registration not started"))
        self.assertIn("fix: systemctl restart nvidia-fabricmanager", done.stdout)

    def test_json(self):
        self.happens("lost 1\n")
        done = self.doctor(f"--only={GPU_CHECKS}", "--json")
        self.assertEqual(1, done.returncode)
        report = json.loads(done.stdout)
        self.assertEqual("failed", report["status"])
        problems = [p for c in report["checks"] for p in c["problems"]]
        self.assertEqual(["GPU 1: GPU is lost"], [p["seen"] for p in problems])
        self.assertEqual("HW-05", problems[0]["entry"])
        self.assertEqual(8, len(report["node"]["gpus"]))

    def test_a_driver_that_hangs(self):
        done = self.doctor("--only=gpus,nvlink,shm", "--seconds=1", RINGSCOPE_SIM_NVML_HANGS="1")
        self.assertEqual(1, done.returncode)
        self.assertIn("FAILED   gpus        the driver does not answer", done.stdout)
        self.assertIn("unknown  nvlink", done.stdout)

    def test_warnings_fail_when_asked_to(self):
        words = ("--only=settings",)
        self.assertEqual(0, self.doctor(*words, NCCL_P2P_DISABLE="1").returncode)
        done = self.doctor(*words, "--strict", NCCL_P2P_DISABLE="1")
        self.assertEqual(1, done.returncode)
        self.assertIn("WARNING  settings    NCCL_P2P_DISABLE=1\n", done.stdout)
        self.assertEqual(0, self.doctor(*words, "--strict", NCCL_DEBUG="INFO").returncode)

    def test_without_a_driver(self):
        done = self.doctor("--only=gpus,nvlink,fabric,peers,memory,throttle", LD_LIBRARY_PATH="")
        if "libnvidia" in done.stdout or os.path.exists("/proc/driver/nvidia/version"):
            self.skipTest("this machine has a driver")
        self.assertEqual(0, done.returncode)
        self.assertIn("nothing of what was asked for is here (no GPU here)", done.stdout)

    def test_the_record(self):
        library = os.path.join(BUILD, "libringscope.so")
        bad = self.path("libbad.so")
        with open(bad, "wb") as f:
            f.write(b"\x7fELF" + b"\0" * 200)
        good = self.doctor("--only=record", f"--library={library}", f"--dir={self.folder.name}/a/b")
        if os.environ.get("RINGSCOPE_SANITIZED") is None:  # its runtime would have to come first
            self.assertIn("libringscope.so loads; ", " ".join(good.stdout.split()))
        self.assertFalse(os.path.exists(self.path("a")))
        self.assertIn("WARNING  record", self.doctor("--only=record", f"--library={bad}").stdout)

    def test_usage(self):
        for words, code, text in ((["--only=nvlinks"], 64, "there is no check nvlinks; did you mean nvlink?"),
                                  (["--skip=x"], 64, "there is no check x"),
                                  (["here"], 64, "takes no arguments"),
                                  (["--seconds=soon"], 64, "is not a number of seconds"),
                                  ([f"--compare={self.path('none')}"], 66, "No such file or directory; a baseline is written by --save"),
                                  ([f"--compare={self.state}"], 65, "damaged, or no baseline"),
                                  (["--only=shm", f"--save={self.path('none')}/b.json"], 70, "cannot be written")):
            done = self.doctor(*words)
            self.assertEqual(code, done.returncode, words)
            self.assertIn(text, done.stderr)
        listed = self.doctor("--list")
        self.assertEqual(0, listed.returncode)
        with open(os.path.join(SOURCE, "docs/doctor.md"), encoding="utf-8") as f:
            page = f.read()
        names = [line.split()[0] for line in listed.stdout.splitlines()]
        self.assertGreater(len(names), 15)
        for name in names:
            self.assertIn(f"`{name}`", page)

    def test_the_slurm_prolog(self):
        with open(os.path.join(SOURCE, "examples/launch/slurm_prolog.sh"), encoding="utf-8") as f:
            script = f.read()
        base, log = self.path("baseline.json"), self.path("log")
        for before, after in (("/opt/ringscope/bin/ringscope", os.path.join(BUILD, "ringscope")), ("/var/lib/ringscope/baseline.json", base),
                              ("/var/log/ringscope-doctor.log", log), ('"settings,record"', '"settings,record,kernel-log,shm,memlock,versions,ports"')):
            self.assertIn(before, script)
            script = script.replace(before, after)

        def prolog(text=script):
            return subprocess.run(["bash", "-c", text], env=self.environment(), capture_output=True, text=True, check=False, timeout=120).returncode
        self.assertEqual(0, prolog())
        self.doctor(f"--save={base}")
        self.assertEqual(0, prolog())
        self.happens("lanes 3 17\n")
        self.assertEqual(1, prolog())
        with open(log, encoding="utf-8") as f:
            self.assertIn("FAILED   nvlink", f.read())
        # What cannot be run drains no node.
        with open(base, "w", encoding="utf-8") as f:
            f.write("{")
        self.assertEqual(0, prolog())
        self.assertEqual(0, prolog(script.replace(os.path.join(BUILD, "ringscope"), self.path("none"))))


if __name__ == "__main__":
    SOURCE = sys.argv.pop()
    BUILD = sys.argv.pop()
    unittest.main()
