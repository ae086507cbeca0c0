"""What binutils say about a shared object, and the rules over it (docs/architecture.md, "Laws" 4 and 5).

Each rule takes the facts and returns problems as text; binary_rules.py applies them to the library and, for each, to a
fault that it must find.
"""
import os
import re
import subprocess
import tempfile

# A third of it is the encoder of traces, a third the wrapped functions (116 of them, with their names and relocations); streaming takes
# 16 KiB, and six tables of NCCL's 8 KiB more than three. A larger one is not forbidden by anything but our word: it is in every process.
STRIPPED_LIMIT = 192 << 10
# frame_dummy of the compiler's start files, and one constructor of ours.
INIT_LIMIT = 2
# Static TLS is scarce in a process that dlopens many libraries: glibc keeps 1,664 bytes for all of them. We need a pointer
# to the thread's row and what it belongs to (recorder/hot_thread.h).
TLS_LIMIT = 64
LIBC = re.compile(r"^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2)$")
# What the compiler's own start files ask for, weakly or of the C library.
START_FILES = {"__cxa_finalize", "__cxa_atexit", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__"}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Facts:
    """Texts of the tools, so that a test can doctor one. `tools` is the prefix of a cross toolchain's binutils."""

    def __init__(self, library, tools=""):
        self.library = library
        self.dynamic = run(tools + "readelf", "-dW", library)
        self.segments = run(tools + "readelf", "-lW", library)
        self.header = run(tools + "readelf", "-hW", library)
        self.defined = run(tools + "nm", "-D", "--defined-only", library)
        self.undefined = run(tools + "nm", "-D", "--undefined-only", library)
        self.symbols = run(tools + "nm", "-C", library)
        self.versions = run(tools + "objdump", "-T", library)
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "stripped.so")
            run(tools + "strip", "--strip-unneeded", "-o", stripped, library)
            self.stripped = os.path.getsize(stripped)
            # What the file holds apart from the gaps that segments leave for the machine's largest page (64 KiB on aarch64).
            loads = re.findall(r"^\s+LOAD\s+\S+\s+\S+\s+\S+\s+0x(\w+)", run(tools + "readelf", "-lW", stripped), re.M)
            self.loaded = sum(int(n, 16) for n in loads)

    def exported(self):
        """Name -> letter of nm."""
        fields = [line.split() for line in self.defined.splitlines() if line.strip()]
        return {f[-1].split("@")[0]: f[-2] for f in fields}

    def wanted(self):
        return [line.split()[-1].split("@")[0] for line in self.undefined.splitlines() if line.strip()]

    def flags(self):
        return " ".join(re.findall(r"\(FLAGS(?:_1)?\)\s+(.*)", self.dynamic))

    def machine(self):
        return re.search(r"Machine:\s*(.*)", self.header).group(1).strip()

    def tls(self):
        found = re.search(r"^\s+TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+0x(\w+)", self.segments, re.M)
        return int(found.group(1), 16) if found else 0

    def constructors(self):
        found = re.search(r"\(INIT_ARRAYSZ\)\s+(\d+)", self.dynamic)
        return int(found.group(1)) // 8 if found else 0

    def newest_glibc(self):
        found = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", self.versions)}
        return max(found) if found else (0,)


def map_exports(text):
    """The names that a linker map (exports.map of the build tree) makes global; all else must be local."""
    bare = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    block = re.search(r"global:(.*?)local:\s*\*\s*;", bare, re.S)
    if block is None:
        raise ValueError("the map has no 'global: …; local: *;'")
    return {name.strip() for name in block.group(1).split(";") if name.strip()}


def exports(facts, allowed):
    """Names in the map and symbols in the library are the same set; tables are data, wrapped functions are functions."""
    found = facts.exported()
    problems = [f"exports {n}, which exports.map does not name" for n in sorted(set(found) - allowed)]
    problems += [f"exports.map names {n}, which the library does not define" for n in sorted(allowed - set(found))]
    for n, letter in sorted((n, l) for n, l in found.items() if n in allowed):
        table = n.startswith(("ncclProfiler_", "ringscope_"))
        if table and letter not in "DdRrBb":
            problems.append(f"{n} is not a data object: NCCL casts the symbol to a table")
        if not table and letter != "T":
            problems.append(f"{n} is not a function")
    return problems


def cpp_wanted(facts):
    """Nothing of libstdc++, libgcc's unwinder, protobuf or abseil is asked of the host."""
    return [f"wants {n}" for n in facts.wanted()
            if re.match(r"_Z|__cxa|__gxx|_Unwind|_ITM", n) and n not in START_FILES]


def cpp_inside(facts):
    """Nor is a copy of theirs in it, or a symbol that the loader makes unique in the process."""
    problems = [f"unique symbol {n}" for n in re.findall(r"(?m)^\w+ u (.*)$", facts.symbols)]
    return problems + [f"contains {line.split(None, 2)[-1]}" for line in facts.symbols.splitlines()
                       if re.search(r"google::protobuf|absl::|std::__cxx11|std::basic_|__gnu_cxx::", line)]


def needed(facts):
    problems = [f"needs {n}" for n in re.findall(r"\(NEEDED\).*\[(.+)\]", facts.dynamic) if not LIBC.match(n)]
    return problems + [f"carries {line.strip()}" for line in facts.dynamic.splitlines() if re.search(r"\((RPATH|RUNPATH)\)", line)]


def hardening(facts):
    """-z nodelete (NCCL may close a plugin whose code is running), relro, now; no text relocation, no executable stack."""
    problems = []
    if "NODELETE" not in facts.flags():
        problems.append("not linked with -z nodelete")
    if not re.search(r"\b(BIND_NOW|NOW)\b", facts.flags()):
        problems.append("not linked with -z now")
    if "GNU_RELRO" not in facts.segments:
        problems.append("no RELRO segment")
    if "TEXTREL" in facts.dynamic:
        problems.append("has text relocations")
    if not re.search(r"GNU_STACK\s+(0x0+\s+)+\S*\s*RW\s", facts.segments):
        problems.append("the stack must not be executable")
    return problems


def constructors(facts):
    count = facts.constructors()
    return [f"{count} constructors, more than {INIT_LIMIT}"] if count > INIT_LIMIT else []


def thread_local(facts):
    """Little, and reached without a call: __tls_get_addr allocates on a thread's first use, in a callback."""
    problems = [f"{facts.tls()} bytes of thread-local storage, more than {TLS_LIMIT}"] if facts.tls() > TLS_LIMIT else []
    dynamic = [n for n in facts.wanted() if n == "__tls_get_addr"] + re.findall(r"R_\w*_TLSDESC", facts.versions)
    return problems + ["thread-local storage of the dynamic model" for _ in dynamic[:1]]


def size(facts):
    """The stripped file on x86-64; elsewhere what of it is loaded, for the file has gaps of a page size we do not choose."""
    bytes_ = facts.stripped if "X86-64" in facts.machine() else facts.loaded
    return [f"{bytes_} bytes stripped, more than {STRIPPED_LIMIT}"] if bytes_ > STRIPPED_LIMIT else []


def glibc(facts, limit):
    newest = facts.newest_glibc()
    symbols = [line.split()[-1] for line in facts.versions.splitlines()
               for v in re.findall(r"GLIBC_([0-9.]+)", line) if tuple(map(int, v.split("."))) > limit]
    if newest <= limit:
        return []
    return [f"needs glibc {'.'.join(map(str, newest))}, more than {'.'.join(map(str, limit))}: {', '.join(sorted(set(symbols)))}"]
