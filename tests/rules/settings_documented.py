"""docs/settings.md holds the settings table of recorder/settings.cc, word for word; `ringscope env` knows the same names.

usage: settings_documented.py [RINGSCOPE_TOOL]     checks
       settings_documented.py --write              renews the table in docs/settings.md
"""
import ast
import os
import re
import subprocess
import sys
import unittest

import source

TOOL = None
PAGE = "docs/settings.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"
ENTRY = re.compile(r'\{("RINGSCOPE\w*"), SettingType::k(\w+), ("[^"]*"),\s*((?:"(?:\\.|[^"\\])*"\s*)+),\s*(true|false),')
TYPES = {"Flag": "0 or 1", "Count": "number", "Mask": "bits", "Seconds": "seconds", "Path": "path", "Text": "text", "Word": "word"}


def settings(text):
    """(name, type, default, meaning, for_tests) of each entry of the table."""
    found = []
    for name, kind, default, meaning, for_tests in ENTRY.findall(text):
        found.append((ast.literal_eval(name), kind, ast.literal_eval(default), ast.literal_eval(f"({meaning})"),
                      for_tests == "true"))
    return found


def table(entries):
    lines = ["| setting | value | default | meaning |", "|---|---|---|---|"]
    for name, kind, default, meaning, for_tests in entries:
        note = " (For tests only.)" if for_tests else ""
        lines.append(f"| `{name}` | {TYPES[kind]} | {'`' + default + '`' if default else '–'} | {meaning}{note} |")
    return "\n".join(lines)


def documented():
    page = source.read(source.ROOT, PAGE)
    return page[page.index(BEGIN) + len(BEGIN):page.index(END)].strip()


class Settings(unittest.TestCase):
    def setUp(self):
        self.text = source.read(source.ROOT, "recorder/settings.cc")
        self.entries = settings(self.text)

    def test_the_table_was_read_whole(self):
        names = set(re.findall(r'^\s*\{"(RINGSCOPE\w*)", SettingType::', self.text, re.M))
        self.assertEqual(names, {e[0] for e in self.entries})
        self.assertGreaterEqual(len(names), 8)

    def test_the_page_says_what_the_code_says(self):
        self.assertEqual(table(self.entries), documented(), "renew with: tests/rules/settings_documented.py --write")

    def test_nothing_reads_a_setting_that_is_not_in_the_table(self):
        names = {e[0] for e in self.entries}
        stray = []
        for name in source.cpp_files(source.ROOT):
            if name.startswith(("recorder/", "plugin/", "preload/", "tools/", "analyzer/", "supervisor/")):
                for setting in re.findall(r'getenv\(\s*"(RINGSCOPE\w*)"', source.read(source.ROOT, name)):
                    if setting not in names:
                        stray.append(f"{name}: {setting}")
        self.assertFalse(stray)

    def test_the_tool_knows_them(self):
        if TOOL is None:
            self.skipTest("no tool given")
        done = subprocess.run([TOOL, "env"], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertFalse([e[0] for e in self.entries if not re.search(rf"\b{e[0]}\b", done.stdout)])


if __name__ == "__main__":
    if "--write" in sys.argv:
        page = source.read(source.ROOT, PAGE)
        new = table(settings(source.read(source.ROOT, "recorder/settings.cc")))
        page = page[:page.index(BEGIN) + len(BEGIN)] + "\n" + new + "\n" + page[page.index(END):]
        with open(os.path.join(source.ROOT, PAGE), "w", encoding="utf-8") as f:
            f.write(page)
        sys.exit(0)
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
