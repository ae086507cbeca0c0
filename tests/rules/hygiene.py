"""What every file and folder of the project must satisfy: size, names, licence, a README a folder, no leftovers."""
import os
import re
import tempfile
import unittest

import source

MAX_LINES = 900
MAX_COLUMNS = 140
TEXT = (".cc", ".h", ".c", ".py", ".sh", ".md", ".txt", ".cmake", ".proto", ".json", ".map", ".textproto", "run")
# Recorded data, not written by hand: captures, corpora, worked examples.
DATA = re.compile(r"^tests/(replay/captures|corpus|fuzz/\w+|unit/\w+/testdata)/")
LEFTOVERS = [
    (re.compile(r"(?<![\w.])/(work|home|root|Users)/\w"), "a path of one machine"),
    (re.compile(r"\b(deb\.debian\.org|pypi\.org|registry\.npmjs|snapshot\.debian|proxy\.golang)"), "a registry's host"),
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "unfinished: do it or leave it out"),
    (re.compile(r"failure-knowledge|lab-findings|\b(knowledge base|design notes?|the lab(oratory)?|Part [0-9]+(\.[0-9]+)*)\b", re.I),
     "a source that is not in the repository"),
]
DOCUMENT = re.compile(r"(?<![\w/.-])docs/[\w./-]*\.md\b")
README_NEEDED = ["", "proto", "recorder", "recorder/flight", "plugin", "preload", "supervisor", "doctor", "analyzer", "analyzer/ingest",
                 "analyzer/model", "analyzer/reasoning", "analyzer/report", "analyzer/scrub", "analyzer/timeline", "catalog", "catalog/entries", "tools", "tests", "tests/catalog", "tests/unit",
                 "release", "tests/integration", "tests/interface", "tests/replay", "tests/rules", "tests/corpus", "tests/fuzz", "tests/sim", "examples",
                 "bench", "cmake", "docs"]


def check_text(name, text):
    problems = []
    lines = text.split("\n")
    if len(lines) - 1 > MAX_LINES:
        problems.append(f"{name}: {len(lines) - 1} lines, more than {MAX_LINES}")
    if name == "tests/rules/hygiene.py":
        return problems
    for number, line in enumerate(lines, 1):
        for pattern, why in LEFTOVERS:
            if pattern.search(line):
                problems.append(f"{name}:{number}: {why}: {line.strip()[:80]}")
        if name.endswith((".cc", ".h")):
            if len(line) > MAX_COLUMNS:
                problems.append(f"{name}:{number}: {len(line)} columns, more than {MAX_COLUMNS}")
            if "\t" in line:
                problems.append(f"{name}:{number}: a tab")
        if name.endswith((".cc", ".h", ".py", ".sh", ".proto")) and line.rstrip() != line:
            problems.append(f"{name}:{number}: blanks at the end of the line")
    return problems


def check_documents(root, name, text):
    """Every docs/….md that is named exists."""
    missing = {d for d in DOCUMENT.findall(text) if not os.path.isfile(os.path.join(root, d))}
    return [f"{name}: names {d}, which does not exist" for d in sorted(missing)]


def check(root):
    problems = []
    for name in source.files(root):
        if name.endswith(TEXT) and not DATA.match(name):
            text = source.read(root, name)
            problems += check_text(name, text) + check_documents(root, name, text)
    for folder in README_NEEDED:
        if not os.path.isfile(os.path.join(root, folder, "README.md")):
            problems.append(f"{folder or '.'}: no README.md")
    licence = os.path.join(root, "LICENSE")
    if not os.path.isfile(licence) or "Apache License" not in open(licence, encoding="utf-8").read(400):
        problems.append("LICENSE: not the Apache License")
    return problems


class Tree(unittest.TestCase):
    def test_the_project(self):
        problems = check(source.ROOT)
        self.assertFalse(problems, "\n" + "\n".join(problems))

    def test_every_source_folder_has_a_readme(self):
        folders = {os.path.dirname(f) for f in source.cpp_files(source.ROOT) if not f.startswith("tests/unit/")}
        missing = [f for f in sorted(folders) if not os.path.isfile(os.path.join(source.ROOT, f, "README.md"))]
        self.assertFalse(missing)

    def test_header_guards_name_the_path(self):
        wrong = []
        for name in source.cpp_files(source.ROOT):
            if name.endswith(".h"):
                guard = "RINGSCOPE_" + re.sub(r"\W", "_", name.upper()) + "_"
                if f"#ifndef {guard}\n#define {guard}\n" not in source.read(source.ROOT, name):
                    wrong.append(f"{name}: wants {guard}")
        self.assertFalse(wrong)


class Seeded(unittest.TestCase):
    def test_each_rule_finds_its_fault(self):
        machine = "/".join(["", "work", "x"])
        for text in ("x\n" * (MAX_LINES + 1), f"see {machine}\n", "// TO" + "DO later\n", "int x;  \n", "int\tx;\n",
                     "x" * (MAX_COLUMNS + 1) + "\n", "// see failure-" + "knowledge\n", "// (Part 2.4)\n", "// 3 ms in the lab\n",
                     "// a design note\n"):
            with self.subTest(text=text[:30]):
                self.assertEqual(1, len(check_text("recorder/a.cc", text)))
        self.assertEqual([], check_text("recorder/a.cc", "int x;  // in the work/ folder of /tmp/workbench\n"))
        self.assertEqual([], check_text("recorder/a.cc", "// the label, in two parts: 2 and 3\n"))

    def test_documents_that_do_not_exist(self):
        good, bad = "docs/" + "verdicts.md", "docs/" + "nowhere.md"
        self.assertEqual([], check_documents(source.ROOT, "a.h", f"// {good}, see also x/{bad}\n"))
        self.assertEqual(1, len(check_documents(source.ROOT, "a.h", f"// ({bad}: {bad})\n")))

    def test_missing_readmes_and_licence(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(len(README_NEEDED) + 1, len(check(root)))


if __name__ == "__main__":
    unittest.main()
