"""docs/diagnosis.schema.json is what proto/diagnosis.proto says, and what `ringscope diagnose --format=json` prints is valid by it.

usage: json_schema.py JSON_SCHEMA DESCRIPTOR_SET RINGSCOPE CASES [--write]

--write renews the file. Every tenth case is diagnosed and validated; `compact` output of the same is held against its own form.
"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILE = os.path.join(ROOT, "docs/diagnosis.schema.json")
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
KNOWN = {"$schema", "title", "$ref", "$defs", "type", "properties", "required", "items", "enum", "anyOf", "minimum", "maximum", "pattern", "description"}
LINE = re.compile(r"^(ringscope|.+:\d+): (error|warning|note): \S.*$")


def validate(value, schema, root, where="$"):
    """The part of JSON Schema that the generator uses; a keyword that it does not know is an error, not a pass."""
    unknown = set(schema) - KNOWN
    if unknown:
        return [f"{where}: keywords {sorted(unknown)} are not known to this test"]
    problems = []
    if "$ref" in schema:
        problems += validate(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, where)
    if "anyOf" in schema and all(validate(value, s, root, where) for s in schema["anyOf"]):
        problems.append(f"{where}: none of anyOf")
    if "enum" in schema and value not in schema["enum"]:
        problems.append(f"{where}: {value!r} is not in the enumeration")
    if "type" in schema:
        wanted = schema["type"]
        if not isinstance(value, TYPES[wanted]) or (isinstance(value, bool) and wanted != "boolean"):
            return problems + [f"{where}: {value!r} is no {wanted}"]
    if "minimum" in schema and value < schema["minimum"] or "maximum" in schema and value > schema["maximum"]:
        problems.append(f"{where}: {value} is out of its range")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        problems.append(f"{where}: {value!r} is not {schema['pattern']}")
    for name in schema.get("required", []):
        if name not in value:
            problems.append(f"{where}: {name} is missing")
    if isinstance(value, dict) and "properties" in schema:
        for name, child in value.items():
            if name in schema["properties"]:
                problems += validate(child, schema["properties"][name], root, f"{where}.{name}")
            else:
                problems.append(f"{where}: {name} is not in the schema")
    if isinstance(value, list) and "items" in schema:
        for i, child in enumerate(value):
            problems += validate(child, schema["items"], root, f"{where}[{i}]")
    return problems


def self_test(schema, answer):
    """The validator must be able to fail."""
    for change in (lambda d: d.pop("state"), lambda d: d.update(state="fine"), lambda d: d.update(ranks_seen=-1), lambda d: d.update(ranks_seen="4"),
                   lambda d: d.update(findings={}), lambda d: d.update(surprise=1), lambda d: d["findings"].append({"kind": "none"})):
        broken = json.loads(json.dumps(answer))
        change(broken)
        if not validate(broken, schema, schema):
            return ["the validator passes what is not valid"]
    return []


def main():
    write = "--write" in sys.argv
    generator, descriptors, tool, cases = [a for a in sys.argv[1:] if a != "--write"]
    made = subprocess.run([generator, descriptors, "ringscope.Diagnosis", "ringscope diagnose --format=json"], capture_output=True, text=True, check=True).stdout
    if write:
        with open(FILE, "w", encoding="utf-8") as f:
            f.write(made)
    with open(FILE, encoding="utf-8") as f:
        if f.read() != made:
            return f"{os.path.relpath(FILE, ROOT)} is not what proto/diagnosis.proto says; renew it with --write"
    schema = json.loads(made)
    undescribed = [f"{name}.{field}" for name in ("Diagnosis", "Finding") for field, value in schema["$defs"][name]["properties"].items()
                   if "description" not in value and "$ref" not in value and field not in ("evidence", "checks")]
    problems = [f"no description: {undescribed}"] if undescribed else []
    answers = 0
    names = sorted(n for n in os.listdir(cases) if os.path.isdir(os.path.join(cases, n)))
    for name in names[::10] + ["/nonexistent"]:
        path = os.path.join(cases, name, "input") if name in names else name
        done = subprocess.run([tool, "diagnose", "--format=json", path], capture_output=True, text=True, timeout=60)
        answer = json.loads(done.stdout)
        problems += [f"{name}: {p}" for p in validate(answer, schema, schema)[:5]]
        if answer.get("schema_version") != 1:
            problems.append(f"{name}: schema_version {answer.get('schema_version')}")
        if answers == 0:
            problems += self_test(schema, answer)
        answers += 1
        if name not in names:
            continue
        compact = subprocess.run([tool, "diagnose", "--format=compact", path], capture_output=True, text=True, timeout=60)
        lines = compact.stdout.splitlines()
        problems += [f"{name}: compact: {line!r}" for line in lines if not LINE.match(line)][:3]
        heads = [line for line in lines if not re.match(r"^(ringscope|.+:\d+): note: ", line)]
        faults = [f for f in answer["findings"] if f["kind"] != "none"]
        if compact.returncode != done.returncode or len(heads) != len(faults) or not lines:
            problems.append(f"{name}: compact has {len(heads)} findings, JSON {len(faults)}")
        for finding, head in zip(faults, heads):
            if finding["kind"] not in head or finding["confidence"] not in head:
                problems.append(f"{name}: compact: {head!r} is not {finding['kind']}")
        for place in (line.split(": note: ")[0].split(": error: ")[0].split(": warning: ")[0] for line in lines):
            if place != "ringscope" and not os.path.isfile(place.rsplit(":", 1)[0]):
                problems.append(f"{name}: compact: no file {place!r}")
    return "\n".join(problems) or None


if __name__ == "__main__":
    sys.exit(main())
