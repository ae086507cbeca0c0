"""Runs `replay` and `ringscope diagnose` and judges the answer (the rules are in docs/verdicts.md and each expected.json)."""
import json
import os
import re
import subprocess

# Kinds that a capture's `kind` stands for where it is not the name of a finding itself.
KINDS = {
    "crashed_rank": {"process_exited"},
    "gpu_hang_kernel": {"gpu_stalled"},
    "straggler": {"rank_slow", "gpu_slow"},
    "gpu_slow": {"gpu_slow", "rank_slow"},
    "order_mismatch": {"order_mismatch", "p2p_unmatched", "communicator_cycle"},
    "ib_link_fault": {"edge_failed"},
}
# Captures that are not right yet, and why.
DEFERRED = {
    "g4_rank1_throttled_8mbit": "throttled TCP: sends end in the socket's buffer, so no rank shows a raised wait",
}
# Captures whose records do not suffice when their logs are gone, too, or somebody's record: the variants leave them out.
NEEDS_ALL = {
    "i1_init_rank2_absent": "no callback before the communicator exists",
    "i2_init_rank2_killed_early": "no callback before the communicator exists",
    "i4_init_rank2_sigstop": "no callback before the communicator exists",
    "n8_2x4_edge_1_5_slow_nopxn": "slow link: only accumulated wait tells",
    "c1_two_comms_rank2_reversed": "two communicators have to be joined",
    "t1_tp2dp2_rank3_skips_tp": "two communicators have to be joined",
}


class Capture:
    def __init__(self, folder):
        self.folder = folder
        self.name = os.path.basename(folder)
        with open(os.path.join(folder, "expected.json"), encoding="utf-8") as f:
            self.expected = json.load(f)
        e = self.expected
        self.healthy = e["kind"] == "none"
        self.hang = e["state"] == "hang"
        self.kinds = set().union(*(KINDS.get(k, {k}) for k in [e["kind"], *e.get("kind_alternatives", [])]))
        self.tolerated = {"none", *e.get("tolerated", [])}
        self.rank, self.hosts = e.get("initiating_rank"), e.get("who_hosts")
        self.edges = set(re.findall(r"\d+->\d+", e.get("edge") or ""))
        self.processes = e.get("processes", 0)
        self.names_someone = self.rank is not None or bool(self.edges) or bool(self.hosts)
        self.deferred = DEFERRED.get(self.name)
        self.needs_all = NEEDS_ALL.get(self.name)


def captures(base):
    return [Capture(os.path.join(base, n)) for n in sorted(os.listdir(base))
            if os.path.exists(os.path.join(base, n, "expected.json"))]


class Diagnosis:
    """What `ringscope diagnose --format=json` said, with the ranks translated back to the capture's own numbers."""

    def __init__(self, status, stdout, stderr, back):
        self.status, self.stderr = status, stderr
        try:
            self.whole = json.loads(stdout)
        except ValueError:
            raise AssertionError(f"diagnose printed no JSON (exit status {status}): {stdout[:200]!r} {stderr[:400]!r}") from None
        self.text = stdout
        self.findings = self.whole.get("findings", [])
        self.kinds = [f.get("kind", "none") for f in self.findings] or ["none"]
        who = (self.findings[0].get("who") or {}) if self.findings else {}
        self.ranks = [back.get(int(r), int(r)) for r in who.get("ranks") or []]
        self.edges = {f"{back.get(x['from'], x['from'])}->{back.get(x['to'], x['to'])}" for x in
                      ({"from": int(e.get("from", 0)), "to": int(e.get("to", 0))} for e in who.get("edges") or [])}
        self.hosts = who.get("hosts") or []
        self.not_seen = self.whole.get("notSeen", self.whole.get("not_seen", []))

    def right_kind(self, capture):
        if capture.healthy:
            return set(self.kinds) <= capture.tolerated
        return self.kinds[0] in capture.kinds

    def right_who(self, capture):
        if not capture.names_someone:
            return True
        if capture.rank is not None and self.ranks == [capture.rank]:
            return True
        if capture.edges and self.edges & capture.edges:
            return True
        if capture.hosts:
            of_ranks = {capture.expected["hosts"][r] for r in self.ranks if r < len(capture.expected["hosts"])}
            return self.hosts == capture.hosts or of_ranks == set(capture.hosts)
        return False

    def accuses_nobody(self):
        return self.kinds[0] in ("none", "undetermined") or not (self.ranks or self.edges or self.hosts)

    def expected_status(self):
        kinds = {f.get("kind", "none") for f in self.findings if not f.get("past")} - {"none"}
        return 0 if not kinds else 2 if kinds == {"undetermined"} else 1

    def brief(self):
        who = ",".join(map(str, self.ranks)) or ",".join(sorted(self.edges)) or ",".join(self.hosts) or "nobody"
        return f"{self.kinds[0]} ({who})" + (f" +{len(self.kinds) - 1}" if len(self.kinds) > 1 else "")


def replay(tree, capture, out, *options, speed="20"):
    """Plays `capture` into `out`. Returns {new rank: captured rank} of a permuted replay, else {}."""
    done = subprocess.run([os.path.join(tree, "replay"), capture.folder, "--out", out, "--speed", speed, *options],
                          env={**os.environ, "RINGSCOPE_STALL_SECONDS": "2"}, capture_output=True, text=True, timeout=180,
                          errors="replace")
    if done.returncode != 0:
        raise AssertionError(f"replay failed with {done.returncode}: {done.stderr[-400:]}")
    table = os.path.join(out, "permutation.json")
    if os.path.exists(table):
        with open(table, encoding="utf-8") as f:
            return {int(new): int(old) for old, new in json.load(f).items()}
    return {}


def diagnose(tree, *paths, back=None):
    done = subprocess.run([os.path.join(tree, "ringscope"), "diagnose", "--format=json", *paths], capture_output=True,
                          text=True, timeout=120, errors="replace")
    return Diagnosis(done.returncode, done.stdout, done.stderr, back or {})
