"""What `cmake --install` puts into a prefix works from there, wherever the prefix is moved.

usage: install_test.py BUILD_TREE
"""
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = None
HERE = os.path.dirname(os.path.abspath(__file__))


def run(*words, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE_", "NCCL_", "LD_"))}
    return subprocess.run(words, env={**environment, **more}, capture_output=True, text=True, timeout=120)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp()
        cls.first = os.path.join(cls.scratch, "first")
        done = run("cmake", "--install", TREE, "--prefix", cls.first, "--strip")
        if done.returncode:
            raise RuntimeError(f"cmake --install: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        cls.prefix = os.path.join(cls.scratch, "moved to", "another place")
        os.makedirs(os.path.dirname(cls.prefix))
        os.rename(cls.first, cls.prefix)
        cls.tool = os.path.join(cls.prefix, "bin", "ringscope")
        cls.commands = re.findall(r"^  (\w+) +\S", run(cls.tool, "--help").stdout.split("exit codes")[0], re.M)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def test_files(self):
        for name in ("bin/ringscope", "lib/ringscope/libringscope.so", "lib/ringscope/libringscope-newer.so", "share/doc/ringscope/README.md",
                     "share/doc/ringscope/LICENSE", "share/doc/ringscope/copyright", "share/doc/ringscope/changelog.gz",
                     "share/doc/ringscope/docs/verdicts.md", "share/doc/ringscope/examples/launch/slurm.sbatch", "share/man/man1/ringscope.1.gz"):
            self.assertTrue(os.path.isfile(os.path.join(self.prefix, name)), name)
        self.assertEqual("libringscope.so", os.readlink(os.path.join(self.prefix, "lib/ringscope/libnccl-profiler-ringscope.so")))

    def test_nothing_knows_where_it_was_built(self):
        for name in ("bin/ringscope", "lib/ringscope/libringscope.so", "lib/ringscope/libringscope-newer.so"):
            said = run("readelf", "-d", os.path.join(self.prefix, name))
            self.assertEqual(0, said.returncode, said.stderr)
            self.assertNotIn("RUNPATH", said.stdout)
            self.assertNotIn("RPATH", said.stdout)

    def test_version_is_the_projects(self):
        with open(os.path.join(HERE, "..", "..", "CMakeLists.txt"), encoding="utf-8") as f:
            version = re.search(r"project\(ringscope VERSION ([\d.]+)", f.read()).group(1)
        self.assertEqual(f"ringscope {version}\n", run(self.tool, "--version").stdout)
        with gzip.open(os.path.join(self.prefix, "share/doc/ringscope/changelog.gz"), "rt", encoding="utf-8") as f:
            self.assertIn(f"## {version}\n", f.read(), "the newest release in CHANGELOG.md")

    def test_explain(self):
        said = run(self.tool, "explain", "--list")
        self.assertEqual(0, said.returncode, said.stderr)
        self.assertIn("HW-01", said.stdout)

    def test_diagnose_the_example(self):
        said = run(self.tool, "diagnose", "--format=json", os.path.join(self.prefix, "share/doc/ringscope/examples/hang"))
        self.assertEqual(1, said.returncode, said.stderr)
        verdict = json.loads(said.stdout)
        self.assertEqual(("hang", "missing_rank", [2]), (verdict["state"], verdict["findings"][0]["kind"], [int(r) for r in verdict["findings"][0]["who"]["ranks"]]))

    def test_run_finds_the_library_beside_it(self):
        out = os.path.join(self.scratch, "out")
        said = run(self.tool, "run", f"--dir={out}", "--evidence=no", "--", "/bin/sh", "-c", "echo $NCCL_PROFILER_PLUGIN; echo $LD_PRELOAD; exit 7")
        self.assertEqual(7, said.returncode, said.stderr)
        library = os.path.join(os.path.realpath(self.prefix), "lib/ringscope/libringscope.so")
        # A path with spaces cannot stand in LD_PRELOAD; the plugin's can have them.
        self.assertEqual(library, said.stdout.split("\n")[0], said.stderr)
        straight = os.path.join(self.scratch, "straight")
        shutil.copytree(self.prefix, straight, symlinks=True)
        said = run(os.path.join(straight, "bin", "ringscope"), "run", f"--dir={out}", "--evidence=no", "--", "/bin/sh", "-c", "echo $LD_PRELOAD")
        self.assertEqual(os.path.join(straight, "lib/ringscope/libringscope.so"), said.stdout.strip().split(":")[0], said.stderr)
        link = os.path.join(self.scratch, "ringscope")
        os.symlink(os.path.join(straight, "bin", "ringscope"), link)
        said = run(link, "run", f"--dir={out}", "--evidence=no", "--", "/bin/sh", "-c", "echo $NCCL_PROFILER_PLUGIN")
        self.assertEqual(os.path.join(straight, "lib/ringscope/libringscope.so"), said.stdout.strip(), said.stderr)

    def test_every_command_has_a_page_that_says_what_help_says(self):
        self.assertGreaterEqual(len(self.commands), 7)
        pages = {os.path.basename(p) for p in glob.glob(os.path.join(self.prefix, "share/man/man1/*.gz"))}
        self.assertEqual({"ringscope.1.gz"} | {f"ringscope-{c}.1.gz" for c in self.commands}, pages)
        for command in self.commands:
            with gzip.open(os.path.join(self.prefix, f"share/man/man1/ringscope-{command}.1.gz"), "rt", encoding="utf-8") as f:
                page = f.read().replace("\\-", "-").replace("\\(ga", "`").replace("\\(aq", "'").replace("\\&", "").replace("\\e", "\\")
            page = re.sub(r"\s+", "", re.sub(r"^\.(TP|PP|nf|fi|B|BR|SH \w+)\b ?", "", page, flags=re.M))
            for line in run(self.tool, command, "--help").stdout.splitlines()[1:]:
                self.assertIn(re.sub(r"\s+", "", line).rstrip("."), page, f"{command}: {line}")

    def test_pages_are_without_fault(self):
        checkers = [words for words in (["mandoc", "-T", "lint", "-W", "error"], ["groff", "-man", "-Tutf8", "-ww", "-z"]) if shutil.which(words[0])]
        if not checkers:
            self.skipTest("neither mandoc nor groff here: the pages' markup is not checked")
        for path in glob.glob(os.path.join(self.prefix, "share/man/man1/*.gz")):
            text = os.path.join(self.scratch, "page.1")
            with gzip.open(path, "rb") as source, open(text, "wb") as target:
                target.write(source.read())
            for words in checkers:
                said = run(*words, text)
                self.assertEqual((0, ""), (said.returncode, said.stdout + said.stderr), os.path.basename(path))


if __name__ == "__main__":
    TREE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
