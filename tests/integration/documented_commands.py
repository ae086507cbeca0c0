"""Every `ringscope …` command line of the README, docs and examples: its options exist, and what can be run here runs.

usage: documented_commands.py RINGSCOPE
A command that names files is run in a folder that has such files: texts of one corpus case, records of an earlier release. What
needs a job, another host or an absolute path of a cluster is only held against `ringscope COMMAND --help`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["README.md", "CONTRIBUTING.md", "examples/README.md"] + sorted(
    os.path.join("docs", name) for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")
)
NOT_RUN = {"run", "snapshot"}  # need a job; tests/preload and tests/integration/snapshot_command.py have them
COMMAND = re.compile(r"(?:^|[\s`(|])((?:build/release/)?ringscope [a-z]+(?: [^`#|\n;&>]*)?)")
ARGUMENT = re.compile(r"[A-Za-z0-9_.,:/=+\-\"' *]+$")


def commands(page):
    """(line number, command) of code blocks and inline code."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            pieces = [line] if line.startswith("    ") else re.findall(r"`([^`]+)`", line)
            for piece in pieces:
                for found in COMMAND.findall(" " + piece.rstrip("\\\n")):
                    yield number, found.strip()


class Tool:
    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.help = {}
        listed = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
        self.names = set(re.findall(r"^  ([a-z]+)  +\S", listed, re.MULTILINE))

    def of(self, name):
        if name not in self.help:
            self.help[name] = subprocess.run([self.path, name, "--help"], capture_output=True, text=True, check=True).stdout
        return self.help[name]


def sandbox(folder):
    case = os.path.join(ROOT, "tests/corpus/cases/005-xid145-fabric-wide-b300-vllm-tp2/input")
    text = next(os.path.join(where, name) for where, _, names in sorted(os.walk(case)) for name in sorted(names))
    record = os.path.join(ROOT, "tests/compat/v2")
    return lambda word: make(os.path.join(folder, word), text, record)


def make(path, text, record):
    if os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path.rstrip("/")) or ".", exist_ok=True)
    if re.search(r"\.[a-z0-9]+$", path):
        shutil.copy(text, path)
    else:
        shutil.copytree(record, path.rstrip("/"))


def main():
    tool, problems, seen, ran = Tool(sys.argv[1]), [], 0, 0
    for page in PAGES:
        if not os.path.exists(os.path.join(ROOT, page)):
            continue
        for number, command in commands(page):
            place = f"{page}:{number}: {command}"
            try:
                words = shlex.split(command)
            except ValueError:
                continue  # a quotation that goes on in the next line
            name, arguments = words[1], words[2:]
            if name not in tool.names:
                if name not in ("is", "and", "does"):  # prose
                    problems.append(f"{place}: no such command")
                continue
            seen += 1
            if "--" in arguments:
                arguments = arguments[: arguments.index("--")]  # the rest is another program's
            for flag in (a.split("=")[0] for a in arguments if a.startswith("--") and len(a) > 2):
                if flag not in tool.of(name) and flag != "--help":
                    problems.append(f"{place}: {flag} is not in `ringscope {name} --help`")
            # "`ringscope diagnose --format=json` prints …" has no files; what extending.md explains is added by the reader.
            words_only = all(a.startswith("-") for a in arguments) and (not arguments or name not in ("explain", "env", "doctor"))
            if name in NOT_RUN or words_only or page == "docs/extending.md" or not all(ARGUMENT.match(a) for a in arguments):
                continue
            if any(a.startswith("/") or "*" in a or a.isupper() and name != "explain" or a == "-" for a in arguments):
                continue
            with tempfile.TemporaryDirectory() as folder:
                provide = sandbox(folder)
                if name not in ("explain", "env", "doctor"):
                    for argument in arguments:
                        if not argument.startswith("-"):
                            provide(argument)
                if name == "doctor" and any("--compare" in a for a in arguments):
                    subprocess.run([tool.path, "doctor", "--save", "good.json"], cwd=folder, capture_output=True, check=False)
                done = subprocess.run(
                    [tool.path, name, *arguments], cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120
                )
                ran += 1
                if done.returncode not in (0, 1, 2):
                    problems.append(f"{place}: exit code {done.returncode}: {done.stderr.strip()[:300]}")
    print(f"{seen} commands, {ran} of them run")
    if seen < 20 or ran < 8:
        problems.append("hardly any command was found: the pages' form has changed")
    return "\n".join(problems) or None


if __name__ == "__main__":
    sys.exit(main())
