"""What libringscope.so must look like to the process that loads it (docs/architecture.md, "Laws" 4 and 5).

usage: binary_rules.py LIBRARY [--sanitized NAME] [--tools PREFIX]

--tools: prefix of a cross toolchain's readelf, nm, objdump and strip; what runs the library is left out then.
RINGSCOPE_GLIBC_LIMIT: newest glibc version that the library may need (the release build says 2.17); without it 2.34 on
Debian 12, and no limit elsewhere: the build machine's own glibc decides then.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import elf_facts
import source

LIBRARY = SANITIZED = TOOLS = ""
DEBIAN_12_GLIBC = "2.34"


def glibc_limit():
    """The ceiling for this build and machine; None when there is none."""
    limit = os.environ.get("RINGSCOPE_GLIBC_LIMIT")
    if not limit and os.path.exists("/etc/os-release"):
        with open("/etc/os-release", encoding="utf-8") as f:
            words = dict(line.strip().split("=", 1) for line in f if "=" in line)
        if words.get("ID") == "debian" and words.get("VERSION_ID", "").strip('"') == "12":
            limit = DEBIAN_12_GLIBC
    return tuple(map(int, limit.split("."))) if limit else None


class Linkage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if SANITIZED:
            raise unittest.SkipTest(f"{SANITIZED} sanitizer build: its runtime adds symbols and libraries of its own")
        cls.facts = elf_facts.Facts(LIBRARY, TOOLS)
        newest = ".".join(map(str, cls.facts.newest_glibc()))
        print(f"\n{cls.facts.machine()}: {cls.facts.stripped} bytes stripped, {cls.facts.loaded} of them loaded (limit "
              f"{elf_facts.STRIPPED_LIMIT}); newest glibc symbol {newest}; {cls.facts.tls()} bytes of TLS (limit {elf_facts.TLS_LIMIT}); {cls.facts.constructors()} "
              f"constructors (limit {elf_facts.INIT_LIMIT})", file=sys.stderr)

    def test_it_exports_what_the_linker_map_names(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(LIBRARY)), "exports.map"), encoding="utf-8") as f:
            allowed = elf_facts.map_exports(f.read())
        self.assertEqual([], elf_facts.exports(self.facts, allowed))

    def test_nothing_of_the_cpp_library_protobuf_or_abseil_is_wanted(self):
        self.assertEqual([], elf_facts.cpp_wanted(self.facts))

    def test_nothing_of_them_is_in_it(self):
        self.assertEqual([], elf_facts.cpp_inside(self.facts))

    def test_it_needs_only_the_c_library(self):
        self.assertEqual([], elf_facts.needed(self.facts))

    def test_hardening_flags(self):
        self.assertEqual([], elf_facts.hardening(self.facts))

    def test_few_constructors(self):
        self.assertEqual([], elf_facts.constructors(self.facts))

    def test_small_static_thread_local_storage(self):
        self.assertEqual([], elf_facts.thread_local(self.facts))

    def test_size(self):
        self.assertEqual([], elf_facts.size(self.facts))

    def test_c_library_version(self):
        limit = glibc_limit()
        if limit is None:
            self.skipTest("not Debian 12, and RINGSCOPE_GLIBC_LIMIT is not set: no ceiling to hold it against")
        self.assertEqual([], elf_facts.glibc(self.facts, limit))


def asleep(library):
    """Loaded into processes that never make a communicator, it must do nothing that can be seen. Returns what was seen."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_PRELOAD": library, "RINGSCOPE_FLIGHT_DIR": os.path.join(folder, "flight"),
                       "RINGSCOPE_DIR": os.path.join(folder, "traces"), "SCRATCH": folder}
        done = subprocess.run(["/bin/true"], env=environment, capture_output=True, text=True)
        if (done.returncode, done.stdout, done.stderr) != (0, "", ""):
            problems.append(f"preloaded into /bin/true: status {done.returncode}, said {(done.stdout + done.stderr).strip()!r}")
        if os.listdir(folder):
            problems.append(f"preloaded into /bin/true: made {os.listdir(folder)}")
    program = ("import ctypes, os, sys\n"
               "def seen(): return (len(os.listdir('/proc/self/task')), len(os.listdir('/proc/self/fd')),\n"
               "  sum(1 for l in open('/proc/self/maps') if 'ringscope-' in l), dict(os.environ))\n"
               "before = seen()\n"
               "ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)\n"
               "after = seen()\n"
               "sys.exit(0 if after == before else 'threads, descriptors, mappings: %s, then %s' % (before[:3], after[:3]))\n")
    done = subprocess.run([sys.executable, "-c", program, library], capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        problems.append(f"loaded by dlopen: {done.stderr.strip()}")
    return problems


class Asleep(unittest.TestCase):
    def test_loaded_and_never_used(self):
        if SANITIZED:
            self.skipTest(f"{SANITIZED} sanitizer build: its runtime must be loaded first")
        if TOOLS:
            self.skipTest("built for another machine")
        self.assertEqual([], asleep(LIBRARY))


class TwoDoors(unittest.TestCase):
    def test_the_second_name_is_the_same_file(self):
        other = os.path.join(os.path.dirname(LIBRARY), "libnccl-profiler-ringscope.so")
        self.assertTrue(os.path.samefile(LIBRARY, other))


GOOD_FLAGS = ("-Wl,-z,nodelete", "-Wl,-z,relro", "-Wl,-z,now")
GOOD = "const void* const ncclProfiler_v6[6] = {0};\n"


class Seeded(unittest.TestCase):
    """Each rule finds its fault in a small library that has it, and nothing in the one that has none."""

    @classmethod
    def setUpClass(cls):
        cls.cc = shutil.which("gcc") or shutil.which("cc")
        if cls.cc is None:
            raise unittest.SkipTest("no C compiler to build bad libraries with")
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = cls.scratch.name

    def build(self, code="", good=GOOD, flags=GOOD_FLAGS, more=()):
        name = os.path.join(self.folder, f"{self._testMethodName}{len(os.listdir(self.folder))}")
        with open(name + ".c", "w", encoding="utf-8") as f:
            f.write(good + code + "\n")
        built = subprocess.run([self.cc, "-shared", "-fPIC", "-O1", "-o", name + ".so", name + ".c", *flags, *more],
                               capture_output=True, text=True)
        self.assertEqual(0, built.returncode, built.stderr)
        return name + ".so"

    def facts(self, code="", **options):
        return elf_facts.Facts(self.build(code, **options))

    def test_a_good_library_passes_every_rule(self):
        library = self.build()
        facts = elf_facts.Facts(library)
        rules = (elf_facts.cpp_wanted, elf_facts.cpp_inside, elf_facts.needed, elf_facts.hardening, elf_facts.constructors,
                 elf_facts.thread_local, elf_facts.size)
        self.assertEqual([], [problem for rule in rules for problem in rule(facts)])
        self.assertEqual([], elf_facts.exports(facts, {"ncclProfiler_v6"}))
        self.assertEqual([], asleep(library))

    def test_exports(self):
        allowed = {"ncclProfiler_v6"}
        self.assertEqual(1, len(elf_facts.exports(self.facts("const int leak = 1;"), allowed)))
        self.assertEqual(1, len(elf_facts.exports(self.facts(), allowed | {"ncclProfiler_v5"})))
        self.assertEqual(1, len(elf_facts.exports(self.facts(good="int ncclProfiler_v6(void) { return 0; }"), allowed)))

    def test_the_map_is_read(self):
        text = "{ global: a; b; /* c; */ local: *; };"
        self.assertEqual({"a", "b"}, elf_facts.map_exports(text))
        self.assertRaises(ValueError, elf_facts.map_exports, "{ global: *; };")

    def test_cpp_symbols(self):
        wanted = "void _ZSt9terminatev(void); void* __cxa_begin_catch(void*);\n" \
                 "static void f(void) { _ZSt9terminatev(); __cxa_begin_catch(0); } void* const p = (void*)f;"
        self.assertEqual(2, len(elf_facts.cpp_wanted(self.facts(wanted))))
        inside = "void _ZN6google8protobuf11MessageLite5ClearEv(void) {} void _ZN4absl5MutexC1Ev(void) {}"
        self.assertEqual(2, len(elf_facts.cpp_inside(self.facts(inside))))
        unique = '__asm__(".globl u\\n.type u, %gnu_unique_object\\n.data\\nu: .quad 1\\n.size u, 8\\n");'
        self.assertEqual(1, len(elf_facts.cpp_inside(self.facts(unique))))

    def test_foreign_libraries(self):
        other = self.build("", good="int other(void) { return 1; }", more=("-Wl,-soname,libother.so.1",))
        facts = self.facts("int other(void); int f(void) { return other(); }", more=(other, "-Wl,-rpath,/opt/lib"))
        problems = elf_facts.needed(facts)
        self.assertEqual(2, len(problems), problems)

    def test_each_hardening_flag(self):
        for code, flags in (("", GOOD_FLAGS[1:]), ("", GOOD_FLAGS[:2] + ("-Wl,-z,lazy",)),
                            ("", ("-Wl,-z,nodelete", "-Wl,-z,norelro", "-Wl,-z,now")), ("", GOOD_FLAGS + ("-Wl,-z,execstack",)),
                            ('__asm__(".text\\n.quad ncclProfiler_v6\\n");', GOOD_FLAGS + ("-Wl,-z,notext",))):
            with self.subTest(code=code, flags=flags):
                problems = elf_facts.hardening(self.facts(code, flags=flags))
                self.assertEqual(1, len(problems), problems)

    def test_constructors(self):
        code = "".join(f"volatile int v{i}; __attribute__((constructor)) static void c{i}(void) {{ v{i} = 1; }}\n" for i in range(3))
        self.assertEqual(1, len(elf_facts.constructors(self.facts(code))))

    def test_thread_local_storage(self):
        large = '__thread char t[4096] __attribute__((tls_model("initial-exec")));\nchar* f(void) { return t; }'
        self.assertEqual(1, len(elf_facts.thread_local(self.facts(large))))
        dynamic = "__thread int t;\nint* f(void) { return &t; }"
        self.assertEqual(1, len(elf_facts.thread_local(self.facts(dynamic))))

    def test_size(self):
        self.assertEqual(1, len(elf_facts.size(self.facts(f"const char ballast[{elf_facts.STRIPPED_LIMIT}] = {{1}};"))))

    def test_c_library_version(self):
        facts = self.facts()
        facts.versions = ("0000 DF *UND* 0000 (GLIBC_2.2.5) read\n0000 DF *UND* 0000 (GLIBC_2.38) __isoc23_strtoul\n")
        self.assertEqual([], elf_facts.glibc(facts, (2, 38)))
        problems = elf_facts.glibc(facts, (2, 34))
        self.assertEqual(1, len(problems))
        self.assertIn("__isoc23_strtoul", problems[0])

    def test_a_library_that_is_awake(self):
        constructor = "__attribute__((constructor)) static void awake(void) { %s }\n"
        said = '#include <unistd.h>\n' + constructor % 'if (write(2, "hello\\n", 6)) return;'
        self.assertEqual(2, len(asleep(self.build(said))))
        file = "#include <stdlib.h>\n#include <unistd.h>\n#include <fcntl.h>\n" + constructor % \
            'if (getenv("SCRATCH") && chdir(getenv("SCRATCH")) == 0) close(open("left", O_CREAT | O_WRONLY, 0600));'
        self.assertEqual(1, len(asleep(self.build(file))))
        thread = "#include <pthread.h>\n#include <unistd.h>\nstatic void* wait_for(void* p) { sleep(60); return p; }\n" + \
            constructor % "pthread_t t; pthread_create(&t, 0, wait_for, 0);"
        self.assertEqual(1, len(asleep(self.build(thread, more=("-pthread",)))))


def option(name):
    if name not in sys.argv:
        return ""
    at = sys.argv.index(name)
    value = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    return value


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    LIBRARY = os.path.abspath(sys.argv.pop(1))
    SANITIZED, TOOLS = option("--sanitized"), option("--tools")
    unittest.main()
