"""Plays captures of real NCCL with RINGSCOPE_STREAM=ops and =steps: every call that a capture holds is in the streams once.

usage: stream_cases.py BUILD_TREE CAPTURES
"""
import collections
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import verdict

TREE = CAPTURES = ""
# Healthy ones, so that every operation ends: rings, trees, several communicators in groups, threads, the tables v4 to v6, PXN.
HEALTHY = ("n1_2x4_healthy", "q3_tree_simple_healthy", "m5_one_thread_4_comms_grouped", "m4_threads_4_in_one_process",
           "m3_split_share_parent_destroyed_first", "e1_create_destroy_10x_healthy")
# Processes that are killed, stopped or hang: what they leave is whole and says of no operation that it ended twice.
STUCK = ("b1_rank2_skips_op10", "2.27.7_rank3_gpu_hang", "e1_rank1_sigkill_before_op10_abort", "sf2_both_send_first_large_16MB")


def calls_of(folder):
    """(operations, network steps) that each process of a capture had, in order of the processes. Operations: calls where the
    API is seen, else launches. Steps: those that were done."""
    counts = []
    for name in sorted(glob.glob(folder + "/rank*.jsonl*"), key=lambda n: int(re.search(r"/rank(\d+)\.", n).group(1))):
        starts, stops = collections.Counter(), collections.Counter()
        with (gzip.open if name.endswith(".gz") else open)(name, "rt") as f:
            for line in f:
                event = json.loads(line)
                if event.get("cb") in ("start", "stop"):
                    (starts if event["cb"] == "start" else stops)[event.get("type")] += 1
        counts.append((starts["CollApi"] + starts["P2pApi"] or starts["Coll"] + starts["P2p"], stops["ProxyStep"]))
    return counts


def show(path):
    done = subprocess.run([TREE + "/ringscope", "show", "--format=json", path], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout) if done.returncode == 0 else None


class Streams(unittest.TestCase):
    def play(self, capture, level, out):
        os.environ["RINGSCOPE_STREAM"] = level
        self.addCleanup(os.environ.pop, "RINGSCOPE_STREAM", None)
        chosen = verdict.Capture(os.path.join(CAPTURES, capture))
        verdict.replay(TREE, chosen, out)
        streams = collections.defaultdict(list)
        for path in sorted(glob.glob(out + "/**/*.stream", recursive=True)):
            streams[int(re.search(r"/rank(\d+)-pid", path).group(1))].append((path, show(path)))
        return chosen, streams

    def test_healthy_captures_are_told_whole(self):
        seen = 0
        for capture in HEALTHY:
            for level in ("ops", "steps"):
                with self.subTest(capture=capture, level=level), tempfile.TemporaryDirectory() as out:
                    _, streams = self.play(capture, level, out)
                    wanted = calls_of(os.path.join(CAPTURES, capture))
                    got = [[sum(s[what]["count"] for _, s in streams[rank]) for what in ("operations", "steps")]
                           for rank in range(len(wanted))]
                    # Each step enters four states, of which the last is its end.
                    self.assertEqual([[ops, 4 * steps if level == "steps" else 0] for ops, steps in wanted], got)
                    seen += sum(steps for _, steps in got)
        self.assertGreater(seen, 1000, "captures without network steps show nothing")

    def test_stuck_captures(self):
        for capture in STUCK:
            with self.subTest(capture=capture), tempfile.TemporaryDirectory() as out:
                chosen, streams = self.play(capture, "ops", out)
                wanted = calls_of(chosen.folder)
                for rank, files in streams.items():
                    listed = subprocess.run([TREE + "/ringscope", "show", "--ops=-1", *[p for p, _ in files]], capture_output=True,
                                            text=True, timeout=60)
                    entries = re.findall(r"row \d+ [\w-]+ #\d+ of \w+(?: \(p2p\))?", listed.stdout)
                    self.assertEqual(len(entries), len(set(entries)), "an operation twice")
                    self.assertEqual(len(entries), sum(s["operations"]["count"] for _, s in files))
                    self.assertLessEqual(len(entries), wanted[rank][0])
                    self.assertEqual("", listed.stderr, "damage")
                self.assertGreater(sum(len(f) for f in streams.values()), 0)
                # They lie beside the traces, and change no diagnosis.
                diagnosis = verdict.diagnose(TREE, out)
                self.assertTrue(diagnosis.right_kind(chosen), diagnosis.kinds)
                self.assertTrue(diagnosis.right_who(chosen), diagnosis.brief())
                self.assertTrue([s for s in diagnosis.not_seen if "stream file" in s], diagnosis.not_seen)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    TREE, CAPTURES = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    unittest.main()
