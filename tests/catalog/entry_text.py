"""Textproto as plain dictionaries, without a protobuf library: protoc writes it in one normal form, which is easy to read."""
import ast
import re
import subprocess

_LINE = re.compile(r'^(\w+)(?:: (.*)| \{)$')


def normalised(protoc, root, text, message="Entry"):
    """`text` once through protoc: one field a line, strings joined, unknown fields refused with ValueError."""
    common = [f"--proto_path={root}", f"{root}/proto/catalog.proto"]
    data = _run([protoc, f"--encode=ringscope.catalog.{message}"] + common, text.encode())
    return _run([protoc, f"--decode=ringscope.catalog.{message}"] + common, data).decode()


def _run(command, data):
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.decode(errors="replace").strip())
    return done.stdout


def parse(text):
    """{field: [values]}; a value is a string (of enums their name, of booleans "true") or again such a dictionary."""
    stack = [{}]
    for line in text.split("\n"):
        line = line.strip()
        if not line:
            continue
        if line == "}":
            stack.pop()
            continue
        name, value = _LINE.match(line).groups()
        if value is None:
            stack.append({})
            stack[-2].setdefault(name, []).append(stack[-1])
        else:
            stack[-1].setdefault(name, []).append(_string(value) if value[0] in "\"'" else value)
    return stack[0]


def _string(literal):
    # protoc writes bytes: octal escapes for what is not ASCII.
    return ast.literal_eval("b" + literal).decode("utf-8", errors="replace")
