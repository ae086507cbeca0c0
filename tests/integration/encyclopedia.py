"""`ringscope explain --html`: every link resolves, pages are well formed and accessible as far as reading them can tell, the same bytes come
twice, a folder with foreign files is left alone.

usage: encyclopedia.py RINGSCOPE
"""
import base64
import hashlib
import html.parser
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

VOID = {"meta", "link", "br", "hr", "input", "img", "wbr"}


class Page(html.parser.HTMLParser):
    """What a page holds. `problems`: tags that are not closed in order, ids that are there twice."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.problems, self.open, self.tags = [], set(), [], [], []
        self.inline = {"style": [], "script": []}
        self.policy = self.data = None
        self.labels, self.labelled, self.referred = set(), [], []
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if attributes.get("id"):
            if attributes["id"] in self.ids:
                self.problems.append(f"id {attributes['id']} twice")
            self.ids.add(attributes["id"])
        self.problems += [f"{tag} has {name}" for name in attributes if name.startswith("on") or name in ("style", "src", "action")]
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag == "label" and attributes.get("for"):
            self.labels.add(attributes["for"])
        if tag in ("textarea", "input"):
            self.labelled.append(attributes.get("id"))
        self.referred += attributes.get("aria-labelledby", "").split()
        if tag in self.inline:
            self.inline[tag].append("")
        self._data = tag == "script" and attributes.get("type") == "application/json"

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes something else, at {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] in self.inline:
            self.inline[self.open[-1]][-1] += data
            if self.open[-1] == "script" and self._data:
                self.data = (self.data or "") + data


def explain(*words):
    return subprocess.run([RINGSCOPE, "explain", *words], capture_output=True, text=True, check=False)


def contents(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


class Encyclopedia(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.above = tempfile.TemporaryDirectory()
        cls.folder = os.path.join(cls.above.name, "pages")
        cls.done = explain("--html", cls.folder)
        cls.files = contents(cls.folder)
        cls.pages = {name: Page(data.decode()) for name, data in cls.files.items()}

    @classmethod
    def tearDownClass(cls):
        cls.above.cleanup()

    def test_it_says_what_it_wrote(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertIn("index.html", self.done.stdout)
        self.assertIn(f"{len(self.files)} pages", self.done.stdout)
        ids = re.findall(r"^  ([A-Z]+-[A-Z0-9]+) ", explain("--list").stdout, re.M)
        self.assertGreater(len(ids), 50)
        for name in [*ids, "index", "errors", "xid", "completions", "variables"]:
            self.assertIn(name + ".html", self.files)
        self.assertEqual(len(self.files), len(ids) + 5)

    def test_every_link_resolves(self):
        checked = 0
        for name, page in self.pages.items():
            for link in page.links:
                where = urllib.parse.urlsplit(link)
                self.assertEqual((where.scheme, where.netloc, where.query), ("", "", ""), f"{name}: {link} leaves the pages")
                target = where.path or name
                self.assertIn(target, self.pages, f"{name}: {link}")
                # The index reads what stands behind its # as a search.
                if where.fragment and not (target == "index.html" and "=" in where.fragment):
                    self.assertIn(where.fragment, self.pages[target].ids, f"{name}: {link}")
                checked += 1
        self.assertGreater(checked, 2000)

    def test_the_searchs_data_leads_somewhere(self):
        data = json.loads(self.pages["index.html"].data)
        self.assertGreater(len(data["lines"]), 150)
        for row in data["rows"]:
            page, anchor = row["page"].split("#")
            self.assertIn(anchor, self.pages[page].ids)
        for line in data["lines"]:
            if line["shown"]:
                self.assertIn(line["id"], self.pages["errors.html"].ids)
        for causes in [x["causes"] for x in data["rows"] + data["lines"]]:
            for cause in causes:
                self.assertIn(cause + ".html", self.files)
        # Chips and links of tags and layers must choose something.
        marks = {("layer", e["layer"]) for e in data["entries"]} | {("tag", t) for e in data["entries"] for t in e["tags"]}
        for name, page in self.pages.items():
            for link in page.links:
                if link.startswith("index.html#"):
                    self.assertTrue(set(urllib.parse.parse_qsl(link.split("#")[1])) <= marks, f"{name}: {link}")

    def test_pages_are_well_formed_and_accessible(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.assertEqual(page.problems, [])
                for tag in ("header", "nav", "main", "footer"):
                    self.assertIn(tag, page.tags)
                self.assertEqual(page.tags.count("h1"), 1)
                self.assertEqual(page.tags.count("main"), 1)
                self.assertTrue({i for i in page.labelled if i} <= page.labels, "a field without a label")
                self.assertTrue(set(page.referred) <= page.ids, "aria-labelledby names nothing")

    def test_the_policy_admits_only_the_pages_own_style_and_script(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.assertTrue(page.policy.startswith("default-src 'none';"))
                self.assertNotIn("unsafe", page.policy)
                for tag, directive in (("style", "style-src"), ("script", "script-src")):
                    own = [text for text in page.inline[tag] if text != page.data]
                    hashes = ["'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'" for text in own]
                    self.assertEqual(re.search(directive + r" ([^;]*);", page.policy).group(1).split(), hashes)
                self.assertNotRegex(self.files[name].decode(), r"https?://(?!www\.w3\.org)[^\s<]*[\"']", "an address to load")

    def test_tables_name_their_sources(self):
        for name in ("errors", "xid", "completions", "variables"):
            text = self.files[name + ".html"].decode()
            self.assertRegex(text, r'(?s)<ul class="notes">.*class="source"')
            # What no entry is about has its source in the notes of the page.
            text = text.split('<table class="cards wide others"')[0]
            rows = re.findall(r'<tr id="([^"]+)">(.*?)</tr>', text, re.S)
            self.assertGreater(len(rows), 15)
            for anchor, row in rows:
                self.assertIn('class="source"', row, f"{name}#{anchor} has no source")

    def test_the_same_bytes_twice(self):
        with tempfile.TemporaryDirectory() as other:
            self.assertEqual(explain("--html", other).returncode, 0)
            self.assertEqual(contents(other), self.files)
            # Over its own: again the same.
            self.assertEqual(explain("--html", other).returncode, 0)
            self.assertEqual(contents(other), self.files)

    def test_a_folder_with_foreign_files_is_left_alone(self):
        with tempfile.TemporaryDirectory() as other:
            with open(os.path.join(other, "notes.txt"), "w", encoding="utf-8") as file:
                file.write("mine")
            done = explain("--html", other)
            self.assertEqual(done.returncode, 64)
            self.assertIn("notes.txt", done.stderr)
            self.assertIn("Move it away", done.stderr)
            self.assertEqual(contents(other), {"notes.txt": b"mine"})

    def test_wrong_usage(self):
        self.assertEqual(explain("--html").returncode, 64)
        done = explain("--html", os.path.join(self.above.name, "x"), "HW-01")
        self.assertEqual(done.returncode, 64)
        self.assertFalse(os.path.exists(os.path.join(self.above.name, "x")))
        self.assertIn("cannot make", explain("--html", os.path.join(self.above.name, "a/b")).stderr)

    def test_a_full_disk_is_told(self):
        done = subprocess.run(["sh", "-c", f'ulimit -f 16; exec "{RINGSCOPE}" explain --html "{self.above.name}/full"'],
                              capture_output=True, text=True, check=False, preexec_fn=ignore_size_signal)
        self.assertEqual(done.returncode, 64)
        self.assertIn("cannot write", done.stderr)
        # The next run repairs what is half there.
        self.assertEqual(explain("--html", os.path.join(self.above.name, "full")).returncode, 0)
        self.assertEqual(contents(os.path.join(self.above.name, "full")), self.files)


def ignore_size_signal():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


if __name__ == "__main__":
    RINGSCOPE = sys.argv.pop(1)
    unittest.main()
