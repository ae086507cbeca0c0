"""Styles and scripts that are embedded in pages: they parse, they load nothing, and what pages name in them exists.

`node --check` reads the scripts where there is a node; without one that check says that it was skipped.
"""
import os
import re
import shutil
import subprocess
import unittest

import source

FOLDERS = ("analyzer/report/html/assets", "analyzer/encyclopedia/assets")
PAGES = "analyzer/report/html"


def assets(ending):
    return [os.path.join(folder, name) for folder in FOLDERS if os.path.isdir(os.path.join(source.ROOT, folder))
            for name in sorted(os.listdir(os.path.join(source.ROOT, folder))) if name.endswith(ending)]


def script_problems(text):
    return [word for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "import(", "fetch(",
                              "XMLHttpRequest") if word in text]


def style_problems(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    problems = ["@import"] if "@import" in text else []
    problems += re.findall(r"url\((?!\s*[\"']?data:).{0,20}", text)
    return problems + (["braces"] if text.count("{") != text.count("}") else [])


class Assets(unittest.TestCase):
    def test_there_are_some(self):
        self.assertGreaterEqual(len(assets(".js")), 2)
        self.assertGreaterEqual(len(assets(".css")), 2)

    def test_scripts_parse(self):
        node = shutil.which("node")
        if node is None:
            self.skipTest("there is no node here")
        for name in assets(".js"):
            with self.subTest(name):
                done = subprocess.run([node, "--check", os.path.join(source.ROOT, name)], capture_output=True, text=True, timeout=60)
                self.assertEqual(0, done.returncode, done.stderr)

    def test_scripts_make_no_markup_and_no_code(self):
        for name in assets(".js"):
            if name.startswith(PAGES):
                self.assertEqual([], script_problems(source.read(source.ROOT, name)), name)

    def test_styles_load_nothing_and_close_their_braces(self):
        for name in assets(".css"):
            self.assertEqual([], style_problems(source.read(source.ROOT, name)), name)

    def test_what_the_script_looks_up_is_on_the_page(self):
        folder = os.path.join(source.ROOT, PAGES)
        pages = "".join(source.read(source.ROOT, os.path.join(PAGES, n)) for n in sorted(os.listdir(folder)) if n.endswith(".cc"))
        script = source.read(source.ROOT, PAGES + "/assets/report.js") + source.read(source.ROOT, PAGES + "/assets/page.js")
        ids = set(re.findall(r"(?:getElementById|data)\(\"([\w-]+)\"\)", script))
        self.assertGreater(len(ids), 8)
        self.assertEqual([], sorted(i for i in ids if f'id=\\"{i}\\"' not in pages))


class Seeded(unittest.TestCase):
    def test_each_rule_finds_its_fault(self):
        for text in ("node.innerHTML = text;", "eval(text)", "fetch('x')"):
            self.assertEqual(1, len(script_problems(text)), text)
        for text in ("@import 'x.css';", "a { background: url(x.png) }", "a { color: red"):
            self.assertEqual(1, len(style_problems(text)), text)
        self.assertEqual([], style_problems("a { background: url(data:x) } /* @import { */"))


if __name__ == "__main__":
    unittest.main()
