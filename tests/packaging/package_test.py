"""The packages: what is in them, with which fields and permissions, and that the same files give the same bytes.

usage: package_test.py BUILD_TREE [PACKAGE_FOLDER]      PACKAGE_FOLDER: packages that are there already (release/package.sh)
"""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

TREE = READY = None


def make(folder):
    # A build tree that is used at the same time must not be written to: cpack works in a folder of its own.
    done = subprocess.run(["cpack", "--config", os.path.join(TREE, "CPackConfig.cmake"), "-B", folder], env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
                          capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"cpack: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def one(folder, pattern):
    found = [p for p in glob.glob(os.path.join(folder, pattern)) if not p.endswith(".sha256")]
    if len(found) != 1:
        raise RuntimeError(f"{pattern}: {found}")
    return found[0]


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp()
        cls.folder = READY or os.path.join(cls.scratch, "a")
        if not READY:
            make(cls.folder)
        cls.deb, cls.tar = one(cls.folder, "*.deb"), one(cls.folder, "*.tar.gz")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def deb_files(self):
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", self.deb], capture_output=True, check=True).stdout
        path = os.path.join(self.scratch, "data.tar")
        with open(path, "wb") as f:
            f.write(data)
        with tarfile.open(path) as tar:
            return {member.name.removeprefix("./").rstrip("/"): member for member in tar.getmembers()}

    def field(self, name):
        return subprocess.run(["dpkg-deb", "-f", self.deb, name], capture_output=True, text=True, check=True).stdout.strip()

    def test_fields(self):
        self.assertEqual("ringscope", self.field("Package"))
        self.assertRegex(self.field("Version"), r"^\d+\.\d+\.\d+$")
        self.assertRegex(self.field("Maintainer"), r"^.+ <\S+@\S+>$")
        self.assertEqual("utils", self.field("Section"))
        self.assertIn("libc6 (>=", self.field("Depends"))
        self.assertGreater(int(self.field("Installed-Size")), 1000)
        description = self.field("Description").splitlines()
        self.assertLess(len(description[0]), 80)
        self.assertFalse(re.match(r"(?i)(an?|the) |ringscope", description[0]), description[0])
        self.assertGreater(len(description), 2)

    def test_files_of_the_deb(self):
        files = self.deb_files()
        for name in ("usr/bin/ringscope", "usr/lib/ringscope/libringscope.so", "usr/share/man/man1/ringscope-run.1.gz", "usr/share/doc/ringscope/copyright",
                     "usr/share/doc/ringscope/changelog.gz"):
            self.assertIn(name, files)
        for name, member in files.items():
            self.assertEqual((0, 0), (member.uid, member.gid), name)
            if name in ("", "."):
                continue
            want = 0o755 if member.isdir() or name.startswith("usr/bin/") or name.endswith(".sh") else 0o644
            if not member.issym():
                self.assertEqual(oct(want), oct(member.mode & 0o7777), name)
            self.assertTrue(name == "usr" or name.startswith("usr/"), name)
            self.assertFalse(name.startswith("usr/local"), name)
        self.assertTrue(files["usr/lib/ringscope/libnccl-profiler-ringscope.so"].issym())

    def test_checksums_and_scripts(self):
        folder = os.path.join(self.scratch, "control")
        subprocess.run(["dpkg-deb", "-e", self.deb, folder], check=True)
        self.assertEqual({"control", "md5sums"}, set(os.listdir(folder)), "nothing runs when it is installed")
        out = os.path.join(self.scratch, "data")
        subprocess.run(["dpkg-deb", "-x", self.deb, out], check=True)
        with open(os.path.join(folder, "md5sums"), encoding="utf-8") as f:
            sums = dict(reversed(line.rstrip("\n").split("  ", 1)) for line in f)
        self.assertGreater(len(sums), 20)
        for name, want in sums.items():
            with open(os.path.join(out, name), "rb") as f:
                self.assertEqual(want, hashlib.md5(f.read()).hexdigest(), name)

    def test_binaries_are_stripped(self):
        out = os.path.join(self.scratch, "stripped")
        subprocess.run(["dpkg-deb", "-x", self.deb, out], check=True)
        for name in ("usr/bin/ringscope", "usr/lib/ringscope/libringscope.so"):
            said = subprocess.run(["readelf", "-S", os.path.join(out, name)], capture_output=True, text=True, check=True).stdout
            self.assertNotIn(".symtab", said, name)

    def test_the_archive_holds_the_same(self):
        with tarfile.open(self.tar) as tar:
            members = tar.getmembers()
        roots = {m.name.split("/")[0] for m in members}
        self.assertEqual(1, len(roots), roots)
        root = roots.pop()
        archived = {m.name.removeprefix(root).strip("/") for m in members if not m.isdir()}
        packaged = {name.removeprefix("usr/") for name, m in self.deb_files().items() if not m.isdir()}
        self.assertEqual(packaged, archived)

    def test_same_bytes(self):
        if READY:
            self.skipTest("the packages were there already")
        again = os.path.join(self.scratch, "b")
        make(again)
        for path in (self.deb, self.tar):
            with open(path, "rb") as a, open(os.path.join(again, os.path.basename(path)), "rb") as b:
                self.assertEqual(hashlib.sha256(a.read()).hexdigest(), hashlib.sha256(b.read()).hexdigest(), os.path.basename(path))


if __name__ == "__main__":
    TREE = os.path.abspath(sys.argv.pop(1))
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        READY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
