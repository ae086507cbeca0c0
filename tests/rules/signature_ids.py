"""Finders name signatures by id: every id that one asks for stands in the catalogue, once.

A typing error would make a finder silent for ever, and no test of another line would notice.
"""
import collections
import glob
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ASKS = re.compile(r"\b(?:EventsOf|FirstEvent|HasEvent)\(\s*[\w.]+,\s*\{([^{}]*)\}", re.S)


def catalogued():
    ids = []
    for path in glob.glob(os.path.join(ROOT, "catalog/signatures/*.textproto")):
        with open(path, encoding="utf-8") as f:
            ids += re.findall(r'^\s*id: "([^"]+)"', f.read(), re.M)
    return ids


def asked():
    for path in sorted(glob.glob(os.path.join(ROOT, "analyzer/reasoning/*.cc"))):
        with open(path, encoding="utf-8") as f:
            for match in ASKS.finditer(f.read()):
                for name in re.findall(r'"([a-z0-9-]+)"', match.group(1)):
                    yield os.path.relpath(path, ROOT), name


class SignatureIds(unittest.TestCase):
    def test_each_stands_once_in_the_catalogue(self):
        twice = [name for name, n in collections.Counter(catalogued()).items() if n > 1]
        self.assertEqual([], twice)

    maxDiff = None

    def test_all_that_finders_ask_for(self):
        known = set(catalogued())
        missing = sorted({f"{path}: {name}" for path, name in asked() if name not in known})
        self.assertEqual([], missing)
        self.assertGreater(len(list(asked())), 50, "the search for questions finds none: it needs mending")


if __name__ == "__main__":
    unittest.main(verbosity=1)
