"""The entries of the failure catalogue hold what somebody on call needs, and agree with each other and with what finders name.

`python3 lint.py [PROTOC]` checks catalog/entries, then seeds one fault per rule in copies: a rule that lets it through fails here.
"""
import copy
import functools
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import entry_text
import rules_of_entries as rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROTOC = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "protoc"


@functools.lru_cache(maxsize=None)
def decoded(text):
    """`text` as protoc understands it, or raises ValueError with what protoc says."""
    return entry_text.parse(entry_text.normalised(PROTOC, ROOT, text))


def load(folder):
    """Problems of files, and {path: entry} of those that parse."""
    problems, entries = [], {}
    for path in sorted(glob.glob(os.path.join(folder, "*.textproto"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        name = os.path.basename(path)
        problems += rules.text_problems(name, text)
        try:
            entries[name] = decoded(text)
        except ValueError as error:
            problems.append(f"{name}: does not parse: {error}")
    return problems, entries


def signatures():
    """{id: patterns} of catalog/signatures."""
    found = {}
    for path in glob.glob(os.path.join(ROOT, "catalog/signatures/*.textproto")):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for s in entry_text.parse(entry_text.normalised(PROTOC, ROOT, text, "SignatureFile")).get("signature", []):
            found[s["id"][0]] = s.get("patterns", [])
    return found


def causes_named():
    """Ids that signatures, tables and finders name as a cause, with one place that does."""
    named = {}
    for pattern in ("catalog/signatures/*.textproto", "catalog/tables/*.textproto", "analyzer/**/*.cc"):
        for path in glob.glob(os.path.join(ROOT, pattern), recursive=True):
            with open(path, encoding="utf-8") as f:
                for cause in re.findall(r'"((?:HW|FB|NET|NC|FW|UC)-\d\d)"', f.read()):
                    named.setdefault(cause, os.path.relpath(path, ROOT))
    return named


class Catalogue(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.file_problems, cls.entries = load(os.path.join(ROOT, "catalog/entries"))
        cls.signatures = signatures()
        cls.named = causes_named()

    def problems(self, entries):
        return rules.problems(entries, self.signatures, self.named)

    def test_the_catalogue(self):
        problems = self.file_problems + self.problems(self.entries)
        self.assertFalse(problems, "\n" + "\n".join(problems))

    def test_it_reads_something(self):
        self.assertGreater(len(self.entries), 50)
        self.assertGreater(len(self.signatures), 50)
        self.assertGreater(len(self.named), 20)

    # (what is broken, words of the report, how): each on a copy of the catalogue, which must then be reported once or more.
    FAULTS = [
        ("no quick answer", "quick_answer", lambda e: e["HW-01"].pop("quick_answer")),
        ("one symptom", "symptoms", lambda e: e["HW-01"].update(symptoms=e["HW-01"]["symptoms"][:1])),
        ("an empty mechanism", "mechanism", lambda e: e["HW-01"].update(mechanism=[" "])),
        ("nothing refutes it", "refutes", lambda e: e["HW-01"].pop("refutes")),
        ("a confirmation without a command", "confirm", lambda e: e["HW-01"]["confirm"][0].pop("command")),
        ("a fix without its cost", "fixes", lambda e: e["HW-01"]["fixes"][0].pop("cost")),
        ("nobody on call", "perspectives", lambda e: e["HW-01"]["perspectives"][0].pop("on_call")),
        ("no layer", "layer", lambda e: e["HW-01"].pop("layer")),
        ("a tag of its own", "tags: sad", lambda e: e["HW-01"]["tags"].append("sad")),
        ("no effect among the tags", "at least one of", lambda e: e["HW-01"].update(tags=["NVLink"])),
        ("no reference", "references", lambda e: e["HW-01"].pop("references")),
        ("a part without support", "fixes: no reference", lambda e: e["HW-01"].update(
            references=[{"text": ["a document"], "supports": ["mechanism"]}])),
        ("a reference to nothing", "neither", lambda e: e["HW-01"]["references"].append({"supports": ["fixes"]})),
        ("a broken link", "HW-99", lambda e: e["HW-01"]["related"].append("HW-99")),
        ("an entry named in text only", "names NET-10", lambda e: e["HW-01"].update(mechanism=["see NET-10"])),
        ("a link to itself", "itself", lambda e: e["HW-01"]["related"].append("HW-01")),
        ("a link of one side", "not mutual", lambda e: e["HW-04"]["related"].remove("HW-01")),
        ("an example that does not match", "own example", lambda e: e["HW-01"]["signatures"][0].update(example=["quiet"])),
        ("a pattern that catches others", "also matches", lambda e: e["HW-01"]["signatures"][0].update(pattern=["."])),
        ("a pattern that is none", "not a regular expression",
         lambda e: e["HW-01"]["signatures"][0].update(pattern=["("])),
        ("a pattern that RE2 refuses", "RE2", lambda e: e["HW-01"]["signatures"][0].update(pattern=["Xid(?= )"])),
        ("an unknown signature", "no-such", lambda e: e["HW-01"]["signatures"][0].update(catalogued_as=["no-such"])),
        ("an unknown placeholder", "{node}", lambda e: e["HW-01"]["confirm"][0].update(command=["ssh {node} dmesg"])),
        ("a machine's folder", "path of one machine", lambda e: e["HW-01"].update(mechanism=["see /" + "home/x/notes"])),
        ("a word of ours", "forbidden", lambda e: e["HW-01"].update(mechanism=["as the chat" + "bot said"])),
        ("two with one id", "twice", lambda e: e["HW-02"].update(id=["HW-01"])),
        ("a cause that no entry has", "HW-02", lambda e: e.pop("HW-02")),
        ("claims in a plain entry", "claims", lambda e: e["HW-01"].update(
            claims=[{"claim": ["a"], "verdict": ["sound"], "truth": ["b"]}])),
        ("a seed without claims", "claims", lambda e: e["SEED-A"].pop("claims")),
        ("a claim without a verdict", "claims", lambda e: e["SEED-A"]["claims"][0].pop("verdict")),
    ]

    def test_each_rule_finds_its_fault(self):
        for what, words, break_it in self.FAULTS:
            with self.subTest(what):
                by_id = {e["id"][0]: e for e in copy.deepcopy(self.entries).values()}
                names = {e["id"][0]: name for name, e in self.entries.items()}
                break_it(by_id)
                problems = self.problems({names[i]: e for i, e in by_id.items()})
                self.assertTrue(any(words in p for p in problems), f"{what}: not reported; {problems[:3]}")

    def test_files_that_are_wrong(self):
        good = next(iter(self.entries))
        with open(os.path.join(ROOT, "catalog/entries", good), encoding="utf-8") as f:
            text = f.read()
        for what, words, name, wrong in (
                ("no textproto", "does not parse", good, text + "}\n"),
                ("an unknown field", "does not parse", good, text + 'colour: "red"\n'),
                ("a long line", "columns", good, text + "# " + "x" * 140 + "\n"),
                ("another name", "file's name", "HW-98-other.textproto", text)):
            with self.subTest(what), tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(wrong)
                problems, entries = load(folder)
                problems += rules.problems(entries, self.signatures, {})
                self.assertTrue(any(words in p for p in problems), problems)


if __name__ == "__main__":
    unittest.main()
