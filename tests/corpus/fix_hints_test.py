"""What ended a public failure stands among the fixes of the entry that `ringscope diagnose` names for it.

usage: fix_hints_test.py RINGSCOPE CASES [-v]

Each case's expected.json has a `fix_hint`: what helped, in the words of whoever solved it. It is looked for among the fixes (what, command) of the
entry whose id is the cause of the first finding, by words:

- A hint is cut into parts at ; , . ( ) and "or": one part that is found is enough, since hints list alternatives.
- Words are lower case without their endings (STEM); a few that mean the same count as one (SAME). Words that no fix in the whole catalogue has
  (names of hosts, files and people's code) say nothing about which entry is meant and are left out.
- A word weighs log(entries / entries whose fixes have it): a rare one says more. A part is found in a fix that has at least half of the part's
  weight, and not less than WEIGHT in sum: one common word is no match.

Whether this is strict enough is measured too: hints must not be found in entries that are neither the right one nor related to it.
"""
import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys

WEIGHT = 2.4
SHARE = 0.5
MOST_FOUND_IN_WRONG = 0.05  # share of (case, unrelated entry) pairs in which the hint is found all the same
SAME = {"upgrade": "update", "newer": "update", "cordon": "drain", "requeue": "restart", "rerun": "restart", "cable": "optic", "transceiver": "optic",
        "dataset": "data", "shard": "data", "power-cycle": "power", "tokenize": "preprocess", "retrain": "reset", "equal": "same", "identical": "same",
        "identically": "same", "alike": "same", "backtrace": "stack"}
COMMON = set("the and for with that this from all its not are was use set get make them then than one each only also what which who when did does run into "
             "without instead least look has have had can will way now out after before any".split())
KNOWN = {
    # The hint says what was found, not what to do.
    "238-old-mismatched-collective-rank39",
}


def stem(word):
    word = SAME.get(word, word)
    if "_" not in word and not any(c.isdigit() for c in word):
        for ending in ("ations", "ation", "ing", "ies", "ed", "es", "s", "e", "y"):
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[:-len(ending)]
                break
    return SAME.get(word, word)


def words(text):
    found = set()
    for word in re.findall(r"[a-z0-9][a-z0-9_+./=-]*", text.lower()):
        word = word.strip(".-/=+")
        for part in [word, *re.split(r"[/=]|--", word)] if re.search(r"[/=]|--", word) else [word]:
            if len(part) >= 3 and part not in COMMON and not part.replace(".", "").isdigit():
                found.add(stem(part))
    return found


def parts(hint):
    return [words(part) for part in re.split(r"[;,()]|\.(?: |$)| or |: ", hint) if words(part)] + [words(hint)]


class Catalogue:
    def __init__(self, entries):
        self.fixes = {i: [words(f.get("what", "") + " " + f.get("command", "")) for f in e["fixes"]] for i, e in entries.items()}
        self.related = {i: {i, *e.get("related", [])} for i, e in entries.items()}
        every = {w for fixes in self.fixes.values() for fix in fixes for w in fix}
        self.weight = {w: math.log(len(entries) / sum(any(w in fix for fix in fixes) for fixes in self.fixes.values())) for w in every}

    def score(self, hint, entry):
        """(found, best share, words) of a hint in an entry."""
        best = (False, 0.0, set())
        for part in parts(hint):
            whole = sum(self.weight.get(w, 0) for w in part)
            for fix in self.fixes[entry]:
                held = {w for w in part & fix if w in self.weight}
                weight = sum(self.weight[w] for w in held)
                if whole > 0:
                    best = max(best, (weight >= WEIGHT and weight >= SHARE * whole, weight / whole, held), key=lambda b: b[:2])
        return best


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def main():
    tool, cases = sys.argv[1:3]
    verbose = "-v" in sys.argv
    ids = re.findall(r"^  ([A-Z]+-[A-Z0-9]+) ", output(tool, "explain", "--list"), re.M)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        catalogue = Catalogue(dict(zip(ids, pool.map(lambda i: json.loads(output(tool, "explain", i, "--format=json")), ids))))
        names = sorted(n for n in os.listdir(cases) if os.path.exists(os.path.join(cases, n, "expected.json")))
        said = dict(zip(names, pool.map(lambda n: json.loads(output(tool, "diagnose", "--format=json", os.path.join(cases, n, "input"))), names)))
    held, lacking, without, pairs, wrong = 0, [], 0, 0, 0
    for name in names:
        with open(os.path.join(cases, name, "expected.json"), encoding="utf-8") as file:
            expected = json.load(file)
        findings = said[name].get("findings", [])
        cause = findings[0].get("cause", {}).get("id", "") if findings else ""
        if cause not in catalogue.fixes or expected["category"] == "healthy_no_fault":
            without += 1
            if verbose:
                print(f"{name}: no entry named; {expected['category']}; {expected['fix_hint']}")
            continue
        found, share, by = catalogue.score(expected["fix_hint"], cause)
        held += found
        if not found:
            lacking.append(name)
        if verbose or (not found and name not in KNOWN):
            print(f"{name}: {cause} {'has' if found else 'LACKS'} {share:.2f} {sorted(by)} of: {expected['fix_hint']}")
        for other in catalogue.fixes:
            if other not in catalogue.related[cause]:
                pairs += 1
                elsewhere = catalogue.score(expected["fix_hint"], other)
                wrong += elsewhere[0]
                if elsewhere[0] and verbose:
                    print(f"    also in {other}: {sorted(elsewhere[2])}")
    print(f"hints found among the fixes of the entry named: {held} of {held + len(lacking)}; {without} cases name no entry; "
          f"found in unrelated entries: {wrong} of {pairs}")
    unexpected = sorted(set(lacking) ^ KNOWN)
    if unexpected:
        return f"not as KNOWN says: {unexpected}"
    if held < 50 or pairs < 1000:
        return "too few cases name an entry"
    return f"the matching finds hints in unrelated entries: {wrong} of {pairs}" if wrong > MOST_FOUND_IN_WRONG * pairs else 0


if __name__ == "__main__":
    sys.exit(main())
