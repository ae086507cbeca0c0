"""examples/launch: shell that parses, YAML that parses, variables and flags that exist, and all that its README names.

usage: launch_examples.py RINGSCOPE
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

import source

TOOL = ""
FOLDER = os.path.join(source.ROOT, "examples", "launch")


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Launch(unittest.TestCase):
    def files(self):
        return [f for f in sorted(glob.glob(os.path.join(FOLDER, "*"))) if not f.endswith("README.md")]

    def test_the_readme_names_each(self):
        readme = text(os.path.join(FOLDER, "README.md"))
        self.assertEqual([], [f for f in self.files() if f"`{os.path.basename(f)}`" not in readme])
        self.assertGreaterEqual(len(self.files()), 6)

    def test_shell_parses(self):
        for path in self.files():
            if path.endswith((".sh", ".sbatch")):
                done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertIn("set -euo pipefail", text(path), path)

    def test_shellcheck(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("shellcheck is not installed")
        scripts = [path for path in self.files() if path.endswith((".sh", ".sbatch"))]
        done = subprocess.run(["shellcheck", "--shell=bash", *scripts], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout)

    def test_yaml_parses(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("python3-yaml is not installed")
        for path in self.files():
            if path.endswith(".yaml"):
                job = yaml.safe_load(text(path))
                self.assertEqual("run", job["spec"]["template"]["spec"]["containers"][0]["command"][1])

    def test_variables_and_flags_exist(self):
        known = subprocess.run([TOOL, "env"], capture_output=True, text=True, check=True).stdout
        help_text = subprocess.run([TOOL, "run", "--help"], capture_output=True, text=True, check=True).stdout
        doctor = subprocess.run([TOOL, "doctor", "--help"], capture_output=True, text=True, check=True).stdout
        prolog = text(os.path.join(FOLDER, "slurm_prolog.sh"))
        for flag in re.findall(r"--([a-z-]+)", " ".join(re.findall(r"flags\+?=\((.*)\)", prolog))):
            self.assertIn(f"--{flag}=", doctor)
        for path in self.files():
            for name in set(re.findall(r"\bRINGSCOPE_[A-Z_]+\b", text(path))):
                self.assertIn(name, known, path)
            for flags in re.findall(r"ringscope run((?: --[a-z-]+(?:[ =]\S+)?)*) --\s", text(path)):
                for flag in re.findall(r"--([a-z-]+)", flags):
                    self.assertIn(f"--{flag}=", help_text, path)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    unittest.main()
