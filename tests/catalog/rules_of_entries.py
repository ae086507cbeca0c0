"""What every entry of the failure catalogue must satisfy. Each function returns problems as sentences."""
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "rules"))
import hygiene  # noqa: E402  (the project's list of what must not be left in a file)

MAX_COLUMNS = 140
PLACEHOLDERS = {"host", "gpu", "bus_id", "rank", "pid", "nic", "port"}
ID = re.compile(r"\b(?:(?:HW|FB|NET|NC|FW|UC)-\d\d|SEED-[AB])\b")
FORBIDDEN = re.compile(r"\b(?:A\.?I\.?|LLMs?|GPT|chatbots?|assistants?|as an expert|our cluster|we (?:saw|found|measured))\b")
# What RE2 refuses and Python takes.
NOT_RE2 = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9]|\(\?P=")
NEEDED = {  # field: (at least so many, parts of each)
    "id": (1, ()), "name": (1, ()), "layer": (1, ()), "status": (1, ()), "quick_answer": (1, ()), "mechanism": (1, ()),
    "symptoms": (2, ("seen", "really_shows")), "systems_affected": (1, ()),
    "signatures": (0, ("pattern", "versions", "example")), "confirm": (1, ("what", "command", "answer")),
    "refutes": (1, ()), "fixes": (1, ("what", "cost")), "verify": (1, ("command", "expected")), "prevention": (1, ()),
    "related": (1, ()), "perspectives": (1, ("executive", "engineer", "on_call")), "alerts": (1, ("watch", "threshold")),
    "settings": (0, ("where", "snippet", "why")), "claims": (0, ("claim", "verdict", "truth")), "references": (1, ()), "tags": (1, ()),
}
# What an entry may be found by: what happens to the job, then what it concerns (catalog/entries/README.md explains them).
EFFECTS = {"hang", "crash", "slow", "start", "wrong data"}
SUBJECTS = {"NVLink", "RDMA", "TCP", "PCIe", "memory", "containers", "versions", "PyTorch", "CUDA graphs", "checkpoint"}
# Part of Reference -> fields whose statements it may carry.
SUPPORTED = {
    "mechanism": ("mechanism", "quick_answer"), "symptoms": ("symptoms",), "signatures": ("signatures",),
    "confirm": ("confirm", "refutes"), "fixes": ("fixes", "verify", "prevention", "settings"), "alerts": ("alerts",),
    "claims": ("claims",),
}
LOG_PREFIX = re.compile(r"^.*?(?:NCCL (?:WARN|INFO)|NET/IB ?:) ")


def text_problems(name, text):
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_COLUMNS:
            problems.append(f"{name}:{number}: {len(line)} columns, more than {MAX_COLUMNS}")
        if line != line.rstrip() or "\t" in line:
            problems.append(f"{name}:{number}: blanks at the end of the line, or a tab")
    return problems


def problems(entries, signatures, named):
    """entries: {file: entry}; signatures: {id of catalog/signatures: patterns}; named: {id of an entry: who names it}."""
    found = []
    by_id = {}
    for name, entry in entries.items():
        found += complete(name, entry) + words(name, entry) + placeholders(name, entry) + supported(name, entry)
        found += catalogued(name, entry, signatures)
        key = entry.get("id", [""])[0]
        if not ID.fullmatch(key) or not re.match(re.escape(key) + r"-[a-z0-9-]+\.textproto$", name):
            found.append(f"{name}: id {key} is not the file's name: wants {key}-words-with-dashes.textproto")
        if key in by_id:
            found.append(f"{name}: id {key} is there twice")
        by_id[key] = entry
    found += links(by_id) + patterns(by_id)
    found += [f"{who}: names {key}, which no entry explains" for key, who in sorted(named.items()) if key not in by_id]
    return found


def complete(name, entry):
    found = []
    for field, (least, parts) in NEEDED.items():
        values = entry.get(field, [])
        if len(values) < least:
            found.append(f"{name}: {field}: {len(values)}, wants at least {least}")
        for value in values:
            if isinstance(value, str) and (not value.strip() or value == "unspecified"):
                found.append(f"{name}: {field} is empty")
            found += [f"{name}: {field}: one without {part}" for part in parts if not value.get(part, [""])[0].strip()]
    if entry.get("id", [""])[0].startswith("SEED-") != bool(entry.get("claims")):
        found.append(f"{name}: claims belong in the seed entries, and each of those has some")
    tags = entry.get("tags", [])
    found += [f"{name}: tags: {tag} is none of {sorted(EFFECTS | SUBJECTS)}" for tag in tags if tag not in EFFECTS | SUBJECTS]
    if not EFFECTS & set(tags) or len(set(tags)) != len(tags):
        found.append(f"{name}: tags: wants each once, and at least one of {sorted(EFFECTS)}")
    found += [f"{name}: claims: one without a verdict" for c in entry.get("claims", []) if c.get("verdict") == ["unspecified"]]
    return found


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for field in value.values():
            yield from strings(field)
    else:
        for item in value:
            yield from strings(item)


def words(name, entry):
    found = []
    for text in strings(entry):
        found += [f"{name}: {why}: {text[:60]}" for pattern, why in hygiene.LEFTOVERS if pattern.search(text)]
        match = FORBIDDEN.search(text)
        if match:
            found.append(f"{name}: forbidden word {match.group(0)!r}: {text[:60]}")
    return found


def placeholders(name, entry):
    found = []
    for field, part in (("confirm", "command"), ("fixes", "command"), ("verify", "command"), ("settings", "snippet")):
        for item in entry.get(field, []):
            for placeholder in re.findall(r"\{([A-Za-z_]\w*)\}", item.get(part, [""])[0]):
                if placeholder not in PLACEHOLDERS:
                    found.append(f"{name}: {field}: unknown placeholder {{{placeholder}}}")
    return found


def supported(name, entry):
    found = []
    covered = set()
    for reference in entry.get("references", []):
        if not reference.get("text", [""])[0].strip() and reference.get("general_knowledge") != ["true"]:
            found.append(f"{name}: references: one with neither text nor general_knowledge")
        covered |= set(reference.get("supports", SUPPORTED))
    for part, fields in SUPPORTED.items():
        found += [f"{name}: {field}: no reference supports it" for field in fields if part not in covered and entry.get(field)]
    return found


def links(by_id):
    found = []
    for key, entry in by_id.items():
        told = {other for text in strings({f: v for f, v in entry.items() if f != "id"}) for other in ID.findall(text)}
        found += [f"{key}: names {other} in its text, which is not among its related entries"
                  for other in sorted(told - {key} - set(entry.get("related", [])))]
        for other in entry.get("related", []):
            if other not in by_id:
                found.append(f"{key}: related to {other}, which does not exist")
            elif other == key:
                found.append(f"{key}: related to itself")
            elif key not in by_id[other].get("related", []):
                found.append(f"{key}: related to {other}: not mutual")
    return found


def compiled(pattern):
    if NOT_RE2.search(pattern):
        raise re.error("RE2 has no look-around and no back references")
    return re.compile(pattern)


def patterns(by_id):
    found = []
    lines = [(key, s["example"][0]) for key, e in by_id.items() for s in e.get("signatures", []) if s.get("example")]
    for key, entry in by_id.items():
        for signature in entry.get("signatures", []):
            pattern = signature.get("pattern", [""])[0]
            try:
                shape = compiled(pattern)
            except re.error as error:
                found.append(f"{key}: not a regular expression: {pattern}: {error}")
                continue
            if not shape.search(signature.get("example", [""])[0]):
                found.append(f"{key}: {pattern}: does not match its own example")
            found += [f"{key}: {pattern}: also matches the example of {other}: {line}"
                      for other, line in lines if other != key and shape.search(line)]
    return found


def catalogued(name, entry, signatures):
    """A line that the tool's matcher knows under an id must be one that it recognises: two wordings of one line are one too many."""
    found = []
    for signature in entry.get("signatures", []):
        key = signature.get("catalogued_as", [""])[0]
        line = signature.get("example", [""])[0]
        if key and key not in signatures:
            found.append(f"{name}: catalogued_as {key}, which catalog/signatures does not hold")
        elif key and not any(re.search(p, text) for p in signatures[key] for text in (line, LOG_PREFIX.sub("", line))):
            found.append(f"{name}: catalog/signatures has {key}, which does not match {line}")
    return found
