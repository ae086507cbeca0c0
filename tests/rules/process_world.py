"""What code inside the training process must not do (docs/architecture.md, "Laws"), as far as text can show it.

The binary rules (binary_rules.py) look at what the linker made of it; these name the line.
"""
import os
import re
import tempfile
import unittest

import source

FOLDERS = ("recorder/", "plugin/", "preload/")
RULES = [
    (r"\bnew\b(?!\s*\()", "no heap: memory is fixed at start"),
    (r"\bdelete\b", "no heap"),
    (r"\b(malloc|calloc|realloc|free|strdup|asprintf|vasprintf|getline)\s*\(", "no heap: memory is fixed at start"),
    (r"\b(throw|try|catch)\b", "no exceptions"),
    (r"\b(dynamic_cast|typeid)\b", "no RTTI"),
    (r"\bstd::(string|vector|map|set|deque|list|unordered_\w+|thread|mutex|function|shared_ptr|unique_ptr|optional|"
     r"cout|cerr|ostream|istream|stringstream|to_string|sort|stable_sort)\b", "needs libstdc++"),
    (r"\b(exit|_exit|_Exit|abort|quick_exit|std::terminate|raise)\s*\(", "never ends the host process"),
    (r"\bassert\s*\(", "aborts the host process; recording goes off instead"),
    (r"\b(fork|vfork|clone|posix_spawn|posix_spawnp|popen|system)\s*\(", "never forks"),
    (r"\b(signal|sigaction|sigaltstack)\s*\(", "signals are the host's"),
    (r"\bcu(da)?[A-Z]\w+\s*\(", "no CUDA call: the driver may hang"),
    (r"\bnvml[A-Z]\w+\s*\(", "no NVML call: the driver may hang"),
]


def check(root):
    problems = []
    for name in source.cpp_files(root):
        if not name.startswith(FOLDERS):
            continue
        for number, line in enumerate(source.code_only(source.read(root, name)).split("\n"), 1):
            if line.lstrip().startswith("#"):
                continue
            line = re.sub(r"=\s*delete\s*;", ";", line)
            for pattern, why in RULES:
                found = re.search(pattern, line)
                if found:
                    problems.append(f"{name}:{number}: '{found.group(0).strip()}': {why}")
    return problems


class Tree(unittest.TestCase):
    def test_the_project(self):
        problems = check(source.ROOT)
        self.assertFalse(problems, "\n" + "\n".join(problems))


class Seeded(unittest.TestCase):
    def problems_of(self, line, name="recorder/a.cc"):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, os.path.dirname(name)))
            with open(os.path.join(root, name), "w") as f:
                f.write(line + "\n")
            return check(root)

    def test_each_rule_finds_its_fault(self):
        for line in ("int* p = new int[4];", "delete p;", "void* p = malloc(4);", "throw 1;", "try {", "std::string s;",
                     "std::vector<int> v;", "exit(1);", "abort();", "assert(x);", "fork();", "sigaction(2, 0, 0);",
                     "auto* d = dynamic_cast<D*>(b);", "cudaStreamQuery(s);", "cuStreamQuery(s);", "nvmlInit_v2();",
                     "popen(cmd, mode);"):
            with self.subTest(line=line):
                self.assertTrue(self.problems_of(line))

    def test_what_is_allowed(self):
        for line in ("Row(const Row&) = delete;", "// malloc() is forbidden here", 'Say("throw it away");',
                     "new (place) Row();", "int renewed = free_rows;", "#if defined(assert)"):
            with self.subTest(line=line):
                self.assertEqual([], self.problems_of(line))

    def test_other_folders_may(self):
        self.assertEqual([], self.problems_of("std::string s;", "tools/a.cc"))


if __name__ == "__main__":
    unittest.main()
