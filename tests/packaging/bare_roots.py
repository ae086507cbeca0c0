"""The packages of release/package.sh on systems with nothing else installed: Debian 11 and 12 roots made by debootstrap.

usage: bare_roots.py [--folder DIR]      DIR keeps the roots; default build/bare

On each: `explain --list`, `diagnose` of the packaged example, and the library loaded into /bin/true by LD_PRELOAD. On Debian 12 also the .deb,
installed by dpkg. Exit status 77, with the reason, where it cannot be done: it needs root, debootstrap and Debian's archive.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))


def skip(why):
    print(f"bare_roots: skipped: {why}")
    sys.exit(77)


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


def make_root(name, folder):
    root = os.path.join(folder, name)
    if not os.path.exists(os.path.join(root, ".complete")):
        shutil.rmtree(root, ignore_errors=True)
        mirror = os.environ.get("RINGSCOPE_DEBIAN_MIRROR")
        made = run("debootstrap", "--variant=minbase", name, root, *([mirror] if mirror else []))
        if made.returncode:
            skip(f"debootstrap cannot make a {name} root: {(made.stdout + made.stderr).strip().splitlines()[-1:]}")
        with open(os.path.join(root, ".complete"), "w", encoding="utf-8"):
            pass
    return root


def check(what, done, status, *words):
    said = done.stdout + done.stderr
    if done.returncode != status or any(word not in said for word in words):
        print(f"bare_roots: {what}: exit status {done.returncode}, want {status} and {words}; said:\n{said[:2000]}")
        sys.exit(1)
    print(f"bare_roots: {what}: good")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default=os.path.join(SOURCE, "build", "bare"))
    args = parser.parse_args()
    if os.geteuid() != 0:
        skip("debootstrap and chroot need root")
    if shutil.which("debootstrap") is None:
        skip("no debootstrap here (Debian package debootstrap)")
    os.makedirs(args.folder, exist_ok=True)
    # What starts on Debian 11 is made with the root that release/build.sh makes.
    names = ("bullseye", "bookworm")
    if not os.path.exists(os.path.join(SOURCE, "build", "release-debian11", "libringscope-newer.so")):
        built = run(os.path.join(SOURCE, "release", "build.sh"))
        if built.returncode == 77:
            print(f"bare_roots: Debian 11 is left out: {built.stderr.strip()}")
            names = ("bookworm",)
        else:
            check("release/build.sh", built, 0)
    roots = {name: make_root(name, args.folder) for name in names}
    made = run(os.path.join(SOURCE, "release", "package.sh"))
    if made.returncode:
        print(f"bare_roots: release/package.sh: {(made.stdout + made.stderr)[-3000:]}")
        sys.exit(1)
    print(made.stdout.strip())
    packages = os.path.join(SOURCE, "build", "packages")
    tested = run(sys.executable, "-B", os.path.join(HERE, "package_test.py"), os.path.join(SOURCE, "build", "package"), packages)
    check("what is in the packages", tested, 0)
    archive, deb = (glob.glob(os.path.join(packages, pattern))[0] for pattern in ("*.tar.gz", "*.deb"))
    for name, root in roots.items():
        shutil.rmtree(os.path.join(root, "opt", "ringscope"), ignore_errors=True)
        os.makedirs(os.path.join(root, "opt", "ringscope"))
        subprocess.run(["tar", "-xzf", archive, "--strip-components=1", "-C", os.path.join(root, "opt", "ringscope")], check=True)
        tool = "/opt/ringscope/bin/ringscope"
        check(f"{name}: the library in /bin/true", run("chroot", root, "/usr/bin/env", "LD_PRELOAD=/opt/ringscope/lib/ringscope/libringscope.so", "/bin/true"), 0)
        done = run("chroot", root, "/usr/bin/env", "LD_PRELOAD=/opt/ringscope/lib/ringscope/libringscope.so", "/bin/true")
        check(f"{name}: without a word", subprocess.CompletedProcess([], len(done.stderr), done.stdout, done.stderr), 0)
        check(f"{name}: explain --list", run("chroot", root, tool, "explain", "--list"), 0, "HW-01")
        check(f"{name}: diagnose", run("chroot", root, tool, "diagnose", "/opt/ringscope/share/doc/ringscope/examples/hang"), 1, "rank 2", "missing_rank")
        check(f"{name}: run", run("chroot", root, "/usr/bin/env", "-C", "/tmp", tool, "run", "--evidence=no", "--", "/bin/sh", "-c", "exit 5"), 5)
    root = roots["bookworm"]
    shutil.copy(deb, os.path.join(root, "tmp", "ringscope.deb"))
    installed = run("chroot", root, "/usr/bin/env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "dpkg", "-i", "/tmp/ringscope.deb")
    check("bookworm: dpkg -i", installed, 0)
    check("bookworm: the installed program", run("chroot", root, "/usr/bin/ringscope", "diagnose", "/usr/share/doc/ringscope/examples/hang"), 1, "missing_rank")
    check("bookworm: dpkg -r", run("chroot", root, "/usr/bin/env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "dpkg", "-r", "ringscope"), 0)
    print("bare_roots: all good")


if __name__ == "__main__":
    main()
