"""The folder table of docs/architecture.md, enforced: which folder may include which.

`python3 include_rules.py` checks the tree and then seeds one wrong include per rule in a scratch tree: a rule that would
let it through fails here.
"""
import os
import sys
import tempfile
import unittest

import source

# Folder -> prefixes of the project headers that it may include, besides its own. The longest matching folder counts.
ALLOWED = {
    "proto/": [],
    "recorder/": ["proto/"],
    "plugin/": ["recorder/"],
    "preload/": ["recorder/"],
    "supervisor/": ["proto/", "recorder/flight/"],
    "doctor/": ["proto/", "catalog/", "supervisor/"],
    "analyzer/ingest/": ["proto/", "analyzer/model/", "catalog/", "recorder/flight/"],
    "analyzer/readers/": ["proto/", "analyzer/ingest/", "analyzer/model/", "catalog/"],
    "analyzer/model/": ["proto/"],
    "analyzer/reasoning/": ["proto/", "analyzer/model/", "catalog/"],
    "analyzer/compare/": ["proto/", "analyzer/model/"],
    "analyzer/timeline/": ["proto/", "analyzer/ingest/", "analyzer/model/"],
    "analyzer/scrub/": ["proto/", "analyzer/ingest/", "analyzer/model/", "catalog/"],
    "analyzer/report/": ["proto/", "analyzer/model/", "catalog/"],
    "analyzer/encyclopedia/": ["proto/", "analyzer/report/"],
    "catalog/": ["proto/"],
    "tools/": ["proto/", "analyzer/", "catalog/", "supervisor/", "doctor/", "recorder/settings"],
    "tests/": [""],
    "bench/": [""],
    "release/": ["plugin/", "recorder/flight/"],
    "examples/": [],
}
# In the training process nothing but the C library and compiler headers: see docs/architecture.md, "Two worlds".
PROCESS_WORLD = ("recorder/", "plugin/", "preload/")
PROCESS_CPP_HEADERS = {"atomic", "type_traits", "limits", "cstddef", "cstdint", "initializer_list", "utility"}
FOREIGN = ("google/", "absl/", "re2/", "gtest/", "gmock/", "nlohmann/", "protozero/", "benchmark/", "boost/")
# The only foreign headers the plugin may look at, and only to check its own declarations against them.
NCCL_CHECK = ("plugin/", ("nccl", "profiler", "cuda"))


def folder_of(name):
    best = ""
    for folder in ALLOWED:
        if name.startswith(folder) and len(folder) > len(best):
            best = folder
    return best


def check(root):
    problems = []
    for name in source.cpp_files(root):
        folder = folder_of(name)
        if not folder:
            problems.append(f"{name}: no rule for this folder; add it to the table in docs/architecture.md and here")
            continue
        for line, quoted, path in source.includes(source.read(root, name)):
            where = f"{name}:{line}: #include of {path}"
            problem = check_quoted(root, name, folder, path) if quoted else check_angled(folder, path)
            if problem:
                problems.append(f"{where}: {problem}")
    return problems


def check_quoted(root, name, folder, path):
    if path.startswith((".", "/")):
        return "write the path from the root of the project"
    if folder == NCCL_CHECK[0] and path.startswith(NCCL_CHECK[1]):
        return None
    if path.startswith(FOREIGN):
        return check_angled(folder, path)
    target = folder_of(path)
    if not target:
        return "not a header of this project, written from its root, nor of a known library"
    if folder in PROCESS_WORLD and path.endswith(".pb.h"):
        return "libprotobuf must not reach the training process"
    if not path.endswith(".pb.h") and not os.path.exists(os.path.join(root, path)):
        return "no such file"
    if path.startswith(folder) and target == folder:
        return None
    if any(path.startswith(prefix) for prefix in ALLOWED[folder]):
        return None
    return f"{folder} may include only {', '.join([folder] + ALLOWED[folder])}"


def check_angled(folder, path):
    if folder not in PROCESS_WORLD:
        return None
    if folder == NCCL_CHECK[0] and path.startswith(NCCL_CHECK[1]):
        return None
    if path.startswith(FOREIGN):
        return "no third-party library in the training process"
    if not path.endswith(".h") and path not in PROCESS_CPP_HEADERS:
        return "C++ library header that may need libstdc++; allowed: " + ", ".join(sorted(PROCESS_CPP_HEADERS))
    return None


class Tree(unittest.TestCase):
    def test_the_project(self):
        problems = check(source.ROOT)
        self.assertFalse(problems, "\n" + "\n".join(problems))

    def test_it_reads_something(self):
        self.assertGreater(len(source.cpp_files(source.ROOT)), 10)


class Seeded(unittest.TestCase):
    """Each rule must find the fault that it is there for."""

    def problems_of(self, name, include, present=()):
        with tempfile.TemporaryDirectory() as root:
            for path in (name, *present):
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w") as f:
                    f.write("// seeded\n" + (f"#include {include}\n" if path == name else ""))
            return check(root)

    def assert_refused(self, name, include, present=()):
        problems = self.problems_of(name, include, present)
        self.assertEqual(1, len(problems), f"{name} with {include}: {problems}")
        self.assertIn(f"{name}:2", problems[0])

    def test_every_folder_refuses_what_the_table_does_not_allow(self):
        headers = {folder: folder + "x.h" for folder in ALLOWED}
        for folder, allowed in ALLOWED.items():
            for other, header in headers.items():
                ok = other == folder or any(header.startswith(a) for a in allowed)
                with self.subTest(folder=folder, includes=header):
                    problems = self.problems_of(folder + "bad.cc", f'"{header}"', (header,))
                    self.assertEqual([] if ok else 1, problems if ok else len(problems))

    def test_the_recorder_core_is_closed_to_readers(self):
        self.assert_refused("analyzer/ingest/a.cc", '"recorder/runtime.h"', ("recorder/runtime.h",))
        self.assert_refused("supervisor/a.cc", '"recorder/runtime.h"', ("recorder/runtime.h",))
        self.assert_refused("tools/a.cc", '"recorder/runtime.h"', ("recorder/runtime.h",))

    def test_libraries_stay_out_of_the_process(self):
        for include in ("<google/protobuf/message.h>", "<absl/strings/str_cat.h>", '"absl/strings/str_cat.h"', "<string>", "<vector>", "<mutex>",
                        '"proto/trace.pb.h"'):
            for folder in PROCESS_WORLD:
                with self.subTest(folder=folder, include=include):
                    self.assert_refused(folder + "a.cc", include, ())

    def test_relative_unknown_and_missing_headers(self):
        self.assert_refused("recorder/a.cc", '"../plugin/x.h"', ("plugin/x.h",))
        self.assert_refused("tools/a.cc", '"helpers.h"')
        self.assert_refused("plugin/a.cc", '"recorder/not_there.h"')

    def test_a_new_folder_needs_a_rule(self):
        self.assertEqual(1, len(self.problems_of("daemon/a.cc", "<stdio.h>")))

    def test_comments_do_not_count(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "recorder"))
            with open(os.path.join(root, "recorder/a.cc"), "w") as f:
                f.write('// #include <string>\n/* \n#include <vector>\n*/\n#include <stdint.h>\n')
            self.assertEqual([], check(root))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        found = check(sys.argv[1])
        print("\n".join(found) or "no wrong include")
        sys.exit(1 if found else 0)
    unittest.main()
