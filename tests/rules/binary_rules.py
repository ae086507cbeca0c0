"""What libringscope.so must look like to the process that loads it (docs/architecture.md, "Laws" 4 and 5).

usage: binary_rules.py LIBRARY [--sanitized NAME]
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY = ""
SANITIZED = ""
EXPORTS = re.compile(r"^ncclProfiler_v[1-6]$")
MUST_EXPORT = {"ncclProfiler_v4", "ncclProfiler_v5", "ncclProfiler_v6"}
LIBC = re.compile(r"^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-[\w-]+\.so\.\d)$")
STRIPPED_LIMIT = 192 << 10  # half of it is the encoder of traces
INIT_LIMIT = 2              # frame_dummy of the compiler's start files, and one constructor of ours


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def dynamic_symbols(*options):
    return [line.split() for line in run("nm", "-D", *options, LIBRARY).splitlines() if line.strip()]


class Linkage(unittest.TestCase):
    def setUp(self):
        if SANITIZED:
            self.skipTest(f"{SANITIZED} sanitizer build: its runtime adds symbols and libraries of its own")

    def test_only_the_profiler_tables_are_exported(self):
        names = {fields[-1].split("@")[0] for fields in dynamic_symbols("--defined-only")}
        self.assertFalse({n for n in names if not EXPORTS.match(n)})
        self.assertLessEqual(MUST_EXPORT, names)

    def test_the_tables_are_data_objects(self):
        kinds = {fields[-1]: fields[-2] for fields in dynamic_symbols("--defined-only")}
        self.assertFalse({n: k for n, k in kinds.items() if k not in "DdRrBb"}, "NCCL casts the symbol to a table")

    def test_nothing_of_the_cpp_library_protobuf_or_abseil_is_wanted(self):
        wanted = [fields[-1] for fields in dynamic_symbols("--undefined-only")]
        allowed = ("__cxa_finalize", "__cxa_atexit", "__cxa_thread_atexit_impl", "_ITM_deregisterTMCloneTable",
                   "_ITM_registerTMCloneTable", "__gmon_start__")
        bad = [n for n in wanted if re.match(r"_Z|__cxa|__gxx|_Unwind|_ITM", n) and n.split("@")[0] not in allowed]
        self.assertFalse(bad)

    def test_no_unique_or_foreign_symbol_is_in_it(self):
        symbols = run("nm", "-C", LIBRARY)
        self.assertNotRegex(symbols, r"(?m)^\w+ u ")
        self.assertNotRegex(symbols, r"google::protobuf|absl::|std::__cxx11|std::basic_")

    def test_it_needs_only_the_c_library(self):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", LIBRARY))
        self.assertFalse([n for n in needed if not LIBC.match(n)])

    def test_nodelete_relro_now_and_no_text_relocation(self):
        dynamic, segments = run("readelf", "-dW", LIBRARY), run("readelf", "-lW", LIBRARY)
        flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\)\s+(.*)", dynamic))
        self.assertIn("NODELETE", flags)
        self.assertRegex(flags, r"\b(BIND_NOW|NOW)\b")
        self.assertIn("GNU_RELRO", segments)
        self.assertNotIn("TEXTREL", dynamic)
        self.assertRegex(segments, r"GNU_STACK\s+(0x0+\s+)+\S*\s*RW\s", "the stack must not be executable")

    def test_few_constructors(self):
        size = re.search(r"\(INIT_ARRAYSZ\)\s+(\d+)", run("readelf", "-dW", LIBRARY))
        self.assertLessEqual(int(size.group(1)) // 8 if size else 0, INIT_LIMIT)

    def test_small_thread_local_storage(self):
        tls = re.search(r"^\s+TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+0x(\w+)", run("readelf", "-lW", LIBRARY), re.M)
        size = int(tls.group(1), 16) if tls else 0
        self.assertLessEqual(size, 128, "initial-exec TLS is scarce in a process that dlopens many libraries")

    def test_size_and_c_library_version(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "stripped.so")
            run("strip", "--strip-unneeded", "-o", stripped, LIBRARY)
            size = os.path.getsize(stripped)
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", run("objdump", "-T", LIBRARY))}
        newest = ".".join(map(str, max(versions))) if versions else "none"
        print(f"\nstripped {size} bytes; newest glibc symbol version {newest}", file=sys.stderr)
        self.assertLessEqual(size, STRIPPED_LIMIT)
        limit = os.environ.get("RINGSCOPE_GLIBC_LIMIT")  # set by the release build for old systems
        if limit:
            self.assertLessEqual(max(versions), tuple(map(int, limit.split("."))))


class Asleep(unittest.TestCase):
    """Loaded into a process that never makes a communicator, it does nothing that can be seen."""

    def setUp(self):
        if SANITIZED:
            self.skipTest(f"{SANITIZED} sanitizer build: its runtime must be loaded first")

    def trace(self, *calls):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "LD_PRELOAD": LIBRARY, "RINGSCOPE_FLIGHT_DIR": os.path.join(folder, "flight"),
                           "RINGSCOPE_DIR": os.path.join(folder, "traces")}
            done = subprocess.run(["/bin/true"], env=environment, capture_output=True, text=True)
            return done, os.listdir(folder)

    def test_preloaded_into_true(self):
        done, left = self.trace()
        self.assertEqual((0, "", "", []), (done.returncode, done.stdout, done.stderr, left))

    def test_no_thread_and_no_mapping_before_the_first_communicator(self):
        program = ("import ctypes, os\n"
                   "def seen(): return len(os.listdir('/proc/self/task')), len(os.listdir('/proc/self/fd')), "
                   "sum(1 for l in open('/proc/self/maps') if 'ringscope-' in l)\n"
                   "before = seen()\n"
                   f"ctypes.CDLL({LIBRARY!r}, mode=os.RTLD_NOW)\n"
                   "assert seen() == before, (before, seen())\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))


class TwoDoors(unittest.TestCase):
    def test_the_second_name_is_the_same_file(self):
        other = os.path.join(os.path.dirname(LIBRARY), "libnccl-profiler-ringscope.so")
        self.assertTrue(os.path.samefile(LIBRARY, other))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    LIBRARY = os.path.abspath(sys.argv.pop(1))
    if "--sanitized" in sys.argv:
        at = sys.argv.index("--sanitized")
        SANITIZED = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    unittest.main()
