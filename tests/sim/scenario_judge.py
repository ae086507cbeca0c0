"""Holds what `ringscope diagnose` says of a job against the truth about it."""
import json
import os
import re
import subprocess

from scenario_files import CONFIDENCES


def evidence(scenario):
    return ["traces", "flight", "logs"] + (["kernel", "nvidia-smi"] if "machine" in scenario else [])


def judge(tree, out, scenario):
    truth = scenario["truth"]
    # The stand-in's absent rank sleeps inside the call that it does not make; a preloaded library sees it there.
    kinds = truth["kinds"] + (["host_blocked"] if "missing_rank" in truth["kinds"] and scenario.get("door", "plugin") != "plugin" else [])
    done = subprocess.run([os.path.join(tree, "ringscope"), "diagnose", "--format=json", *(os.path.join(out, f) for f in evidence(scenario))],
                          capture_output=True, text=True, timeout=120)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return f"no JSON: {done.stderr[:300]}", "-"
    findings = [f for f in said["findings"] if f["kind"] != "none"]
    first = findings[0] if findings else None
    who = first["who"] if first else {}
    ranks, hosts = [int(r) for r in who.get("ranks", [])], who.get("hosts", [])
    brief = f"{said['state']}: " + (f"{first['kind']} ranks {ranks} hosts {hosts} ({first['confidence']})" if first else "nothing")
    if not truth["kinds"]:
        return ("accuses" if findings else ""), brief
    if first is None or first["kind"] not in kinds:
        return f"kind, want {truth['kinds']}", brief
    if "ranks" in truth and ranks != truth["ranks"]:
        return f"ranks, want {truth['ranks']}", brief
    edges = [[int(e["from"]), int(e["to"])] for e in who.get("edges", [])]
    if "edges" in truth and edges != truth["edges"]:
        return f"edges {edges}, want {truth['edges']}", brief
    if CONFIDENCES.index(first["confidence"]) < CONFIDENCES.index(truth.get("at_least", "possible")):
        return f"confidence, want {truth['at_least']}", brief
    if "hosts" in truth and hosts != truth["hosts"]:
        return f"hosts, want {truth['hosts']}", brief
    if said["state"] != truth["state"]:
        return f"state, want {truth['state']}", brief
    return "", brief


def judge_through_preload(fault, brief, truth):
    """Without NCCL's own events less is known: what is said must still be no accusation of somebody else, and no all-clear."""
    if not fault:
        return "", brief
    words = re.match(r"(\w+): (?:(\w+) ranks \[([\d, ]*)\]|nothing)", brief)
    if words is None:
        return fault, brief
    state, kind, ranks = words.group(1), words.group(2), [int(r) for r in (words.group(3) or "").split(",") if r.strip()]
    if not truth["kinds"]:
        return fault, brief
    if kind in (None, "undetermined") and (state != "healthy" or truth["state"] in ("healthy", "slow", "recovered", "wrong_data")):
        return "", brief + " (sees less)"
    if "ranks" in truth and ranks and set(ranks) <= set(truth["ranks"]):
        return "", brief + " (another view of it)"
    return fault, brief
