"""The files of tests/sim/scenarios, and a job of one's own: read, and checked before anything is started.

What they hold is in scenarios/README.md. Shape and words are checked here; whether there is everything in the job that its faults and
its machine speak of is checked by the program sim/check_job, which reads faults and machines with the stand-ins' own readers.
"""
import json
import os
import re
import subprocess
import tempfile

from bad_input import BadInput, all_of, nearest

HERE = os.path.dirname(os.path.abspath(__file__))
DOORS = ("plugin", "preload", "both")
CONFIDENCES = ["possible", "probable", "established"]


def words_of(message):
    """The names of an enumeration of diagnosis.proto."""
    with open(os.path.join(HERE, "..", "..", "proto", "diagnosis.proto"), encoding="utf-8") as f:
        body = re.search(r"message %s \{\s*enum Value \{(.*?)\n  \}" % message, f.read(), re.S).group(1)
    return re.findall(r"(\w+) = \d+;", re.sub(r"//.*", "", body))


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value):
    return isinstance(value, str)


def list_of(kind):
    return lambda value: isinstance(value, list) and all(kind(one) for one in value)


def map_of(kind):
    return lambda value: isinstance(value, dict) and all(kind(one) for one in value.values())


def is_pair(value):
    return list_of(is_whole)(value) and len(value) == 2


# What a file may hold: how it must look, in words, and whether it must be there.
KEYS = {
    "about": (is_text, "a text", True), "hosts": (is_whole, "a number", True), "ranks_per_host": (is_whole, "a number", True),
    "workload": (is_text, "a name", True), "steps": (is_whole, "a number", True), "faults": (is_text, "a text", True),
    "truth": (lambda v: isinstance(v, dict), "an object", True), "machine": (is_text, "a name", False),
    "before": (map_of(list_of(is_text)), "an object of lists of lines, one for each host", False),
    "environment": (map_of(is_text), "an object of texts", False),
    "tier": (lambda v: v in ("ci", "long"), '"ci" or "long"', False),
    "seconds": (lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and 0 < v <= 3600, "a number above 0, up to 3600", False),
    "doors": (lambda v: bool(v) and list_of(lambda one: one in DOORS)(v), f"a list of some of {all_of(DOORS)}", False),
}
TRUTH = {
    "state": (lambda v: v in words_of("State"), "a state of a job: " + all_of(words_of("State")), True),
    "kinds": (list_of(lambda one: one in words_of("Kind")), "a list of kinds of findings: " + all_of(words_of("Kind")), True),
    "ranks": (list_of(is_whole), "a list of numbers", False), "hosts": (list_of(is_text), "a list of names", False),
    "edges": (list_of(is_pair), "a list of pairs of numbers", False),
    "at_least": (lambda v: v in CONFIDENCES, "one of " + all_of(CONFIDENCES), False),
}


def no_twice(pairs):
    seen = dict(pairs)
    if len(seen) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'"{next(key for key in keys if keys.count(key) > 1)}" is given twice')
    return seen


class ScenarioFile:
    def __init__(self, path):
        self.path = os.path.relpath(path) if len(os.path.relpath(path)) < len(path) else path
        try:
            with open(path, encoding="utf-8") as f:
                self.text = f.read(1 << 20)
        except (OSError, UnicodeDecodeError) as e:
            raise BadInput(f"{self.path}: cannot be read: {getattr(e, 'strerror', None) or e}", 65) from None

    def fault(self, key, what):
        """A mistake at the first place where the file names `key`."""
        at = self.text.find(f'"{key}"')
        line = "" if at < 0 else f":{self.text.count(chr(10), 0, at) + 1}"
        return BadInput(f"{self.path}{line}: {what}", 65)

    def check_keys(self, given, known, where):
        for key in given:
            if key not in known:
                raise self.fault(key, f'there is no "{key}"{where}{nearest(key, known)} There are {all_of(known)}')
        for key, (right, words, needed) in known.items():
            if key not in given:
                if needed:
                    raise self.fault("truth" if where else "about", f'"{key}" is missing{where}; it is {words}')
            elif not right(given[key]):
                raise self.fault(key, f'"{key}"{where} must be {words}')

    def read(self):
        try:
            scenario = json.loads(self.text, object_pairs_hook=no_twice)
        except json.JSONDecodeError as e:
            raise BadInput(f"{self.path}:{e.lineno}:{e.colno}: not JSON: {e.msg}", 65) from None
        except (ValueError, RecursionError) as e:
            raise BadInput(f"{self.path}: {e if isinstance(e, ValueError) else 'nested too deep'}", 65) from None
        if not isinstance(scenario, dict):
            raise BadInput(f"{self.path}: a scenario is one JSON object", 65)
        self.check_keys(scenario, KEYS, "")
        self.check_keys(scenario["truth"], TRUTH, " in truth")
        for name in scenario.get("environment", {}):
            if name.startswith("RINGSCOPE_SIM_"):
                raise self.fault(name, f"{name}: what the stand-ins are asked for has keys of its own: {all_of(KEYS)}")
        scenario["file"] = self
        return scenario


def scenarios():
    """All files of the folder, unchecked; reading one may raise BadInput."""
    folder = os.path.join(HERE, "scenarios")
    return {name[:-5]: os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".json")}


def machines():
    return [name[:-8] for name in sorted(os.listdir(os.path.join(HERE, "machines"))) if name.endswith(".machine")]


def machine_file(name):
    return name if "/" in name else os.path.join(HERE, "machines", name + ".machine")


def check_truth(file, scenario):
    n = scenario["hosts"] * scenario["ranks_per_host"]
    for rank in scenario["truth"].get("ranks", []) + sum(scenario["truth"].get("edges", []), []):
        if not 0 <= rank < n:
            raise file.fault("truth", f"truth names rank {rank}; this job has ranks 0 to {n - 1}")
    for host in scenario["truth"].get("hosts", []):
        if host not in (f"node{h}" for h in range(scenario["hosts"])):
            raise file.fault("truth", f"truth names {host}; hosts are node0 to node{scenario['hosts'] - 1}")


def check(tree, scenario):
    """Raises BadInput where the job lacks what it asks for."""
    file = scenario.get("file")

    def fault(key, what, status=64):
        return file.fault(key, f"{key}: {what}") if file else BadInput(f"--{key.replace('_', '-')}: {what}", status)

    words = [f"{key}={scenario[key]}" for key in ("hosts", "ranks_per_host", "workload", "steps", "faults")]
    if any("\0" in word for word in words):
        raise fault("faults", "a text with a NUL in it")
    machine = scenario.get("machine")
    if machine is not None:
        if "/" not in machine and machine not in machines():
            raise fault("machine", f'there is no "{machine}"{nearest(machine, machines())} There are {all_of(machines())} '
                                   "(tests/sim/machines); or give a path to a file")
        words.append(f"machine={machine_file(machine)}")
    with tempfile.TemporaryDirectory() as scratch:
        for n, (host, lines) in enumerate(scenario.get("before", {}).items()):
            words.append(f"before.{host}={os.path.join(scratch, str(n))}")
            with open(os.path.join(scratch, str(n)), "w", encoding="utf-8") as f:
                f.writelines(line + "\n" for line in lines)
        done = subprocess.run([os.path.join(tree, "sim", "check_job"), *words], capture_output=True, text=True, timeout=60)
        if done.returncode:
            key, _, what = done.stdout.strip().partition(": ")
            if not what:
                raise BadInput(f"{tree}/sim/check_job ended with {done.returncode}: {done.stderr.strip()[:300]}", 70)
            for n, host in enumerate(scenario.get("before", {})):
                what = what.replace(os.path.join(scratch, str(n)) + ":", f"{host}, line ")
            raise fault(key, what, done.returncode)
    if file:
        check_truth(file, scenario)
