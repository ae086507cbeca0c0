"""What the rule tests share: the list of the project's files, C++ without comments, the includes of a file."""
import os
import re
import subprocess

CPP = (".cc", ".h")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(root):
    """Paths relative to `root` of every file that belongs to the project (tracked, or new and not ignored)."""
    if os.path.exists(os.path.join(root, ".git")):
        try:
            out = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-co",
                                  "--exclude-standard", "-z"], capture_output=True, check=True)
            names = sorted(n for n in out.stdout.decode().split("\0") if n)
            return [n for n in names if os.path.isfile(os.path.join(root, n))]
        except (OSError, subprocess.CalledProcessError):
            pass  # no git here (a source archive, a bare container): walk instead
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if not s.startswith((".git", "build")) and
                         s not in ("__pycache__", ".cache")]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(found)


def cpp_files(root):
    return [f for f in files(root) if f.endswith(CPP)]


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as f:
        return f.read()


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def _blank(match):
    text = match.group(0)
    if text[0] == "'" and re.search(r"[0-9a-fA-F]$", match.string[:match.start()]):
        return text  # a digit separator, not a character
    keep = "\n" * text.count("\n")
    return keep if text[0] == "/" else text[0] + keep + text[0]


def code_only(text):
    """`text` with comments removed and literals emptied; line numbers stay."""
    return _TOKEN.sub(_blank, text)


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def includes(text):
    """(line, quoted, path) of each #include that is not commented out."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    return [(bare.count("\n", 0, m.start()) + 1, m.group(1) == '"', m.group(2)) for m in _INCLUDE.finditer(bare)]
