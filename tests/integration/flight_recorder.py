"""Dumps of PyTorch's flight recorder as pickle.dump() writes them, through `ringscope diagnose`: seeded faults, and none.

    flight_recorder.py RINGSCOPE
"""
import gzip
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import flight_recorder_jobs as jobs

RINGSCOPE = ""


def diagnose(folder):
    done = subprocess.run([RINGSCOPE, "diagnose", "--format=json", folder], capture_output=True, text=True, check=False, timeout=120)
    return json.loads(done.stdout), done.returncode


class Dumps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def verdict(self, job, **how):
        folder = os.path.join(self.folder, "job")
        shutil.rmtree(folder, ignore_errors=True)
        job.write(folder, **how)
        return diagnose(folder)

    def expect(self, job, kind, ranks, **how):
        d, _ = self.verdict(job, **how)
        self.assertTrue(d["findings"], d)
        first = d["findings"][0]
        self.assertEqual((first["kind"], first["who"].get("ranks", [])), (kind, ranks), json.dumps(first, indent=1))
        return d

    def test_one_rank_is_missing_whoever_it_is(self):
        rng = random.Random(11)
        for ranks, missing in ((2, 0), (8, 0), (8, 5), (16, 15)):
            job = jobs.Job(ranks, timing=rng.random() < 0.5)
            jobs.steps(job, 60, rng)
            for r in range(ranks):
                if r != missing:
                    job.ranks[r].collective("0", state="scheduled")
            for protocol in (0, 1, 2, 3, 4, 5):
                self.expect(job, "missing_rank", [missing], protocol=protocol)
            self.expect(job, "missing_rank", [missing], as_json=True, name="trace_{}.json")

    def test_healthy(self):
        rng = random.Random(12)
        for timing in (False, True):
            job = jobs.Job(8, timing=timing)
            jobs.steps(job, 60, rng)
            d, status = self.verdict(job)
            self.assertEqual((d["state"], d.get("findings", []), status), ("healthy", [], 0))

    def test_a_call_open_everywhere_accuses_nobody(self):
        job = jobs.Job(8)
        jobs.steps(job, 60, random.Random(13))
        job.all(state="scheduled")
        d, _ = self.verdict(job)
        for finding in d["findings"]:
            self.assertEqual(finding["who"].get("ranks", []), [])
            self.assertEqual(finding["kind"], "undetermined")

    def test_sizes(self):
        rng = random.Random(14)
        for ranks, odd in ((4, [0]), (4, [3]), (8, [0, 6]), (8, [2])):
            job = jobs.Job(ranks)
            jobs.steps(job, 30, rng)
            for r in range(ranks):
                job.ranks[r].collective("0", state="scheduled", sizes=(1025 if r in odd else 262144,))
            self.expect(job, "size_mismatch", odd)
        job = jobs.Job(4)
        for r in range(4):
            job.ranks[r].collective("0", state="scheduled", sizes=(1025 if r % 2 else 262144,))
        self.expect(job, "size_mismatch", [])

    def test_another_collective(self):
        job = jobs.Job(4)
        jobs.steps(job, 30, random.Random(15))
        for r in range(4):
            job.ranks[r].collective("0", name="_all_gather_base" if r == 2 else "all_reduce", state="scheduled")
        self.expect(job, "collective_mismatch", [2])

    def test_tensor_and_data_parallel_groups(self):
        rng = random.Random(16)
        for lost in range(8):
            job = jobs.Job(8)
            for d in range(4):
                job.group(f"tp{d}", "TP", [2 * d, 2 * d + 1])
            for t in range(2):
                job.group(f"dp{t}", "DP", [t, t + 2, t + 4, t + 6])
            for _ in range(rng.randrange(5, 20)):
                for group in list(job.groups)[1:]:
                    job.all(group)
            for d in range(4):
                if d != lost // 2:
                    job.all(f"tp{d}")
            job.ranks[lost ^ 1].collective(f"tp{lost // 2}", state="scheduled")
            for r in range(8):
                if r // 2 != lost // 2:
                    job.ranks[r].collective(f"dp{r % 2}", state="scheduled")
            self.expect(job, "missing_rank", [lost])

    def test_rings_that_start_apart(self):
        job = jobs.Job(4, ring=30)
        job.group("1", "PP", [2, 3])  # these two call more, so their rings go round sooner
        for step in range(60):
            job.all("0")
            if step > 20:
                job.all("1")
        for r in (0, 2, 3):
            job.ranks[r].collective("0", state="scheduled")
        self.expect(job, "missing_rank", [1])

    def test_scheduled_among_started_and_started_among_scheduled(self):
        for odd, kind, ranks in (("scheduled", "gpu_stalled", [5]), ("started", "undetermined", [])):
            job = jobs.Job(8, timing=True)
            jobs.steps(job, 20, random.Random(17))
            for r in range(8):
                job.ranks[r].collective("0", state=odd if r == 5 else {"scheduled": "started", "started": "scheduled"}[odd])
            self.expect(job, kind, ranks)

    def test_messages(self):
        job = jobs.Job(2)
        jobs.steps(job, 20, random.Random(18))
        for r in range(2):
            job.ranks[r].message("0", 1 - r, True, state="scheduled")
        d = self.expect(job, "p2p_unmatched", [0, 1])
        self.assertTrue(d["findings"][0]["who"]["edges"])
        # A pipeline whose third stage has its input and sends nothing on; batches, as Megatron sends them.
        job = jobs.Job(4, ring=40)
        for _ in range(30):
            for r in range(4):
                calls = ([(r - 1, False)] if r > 0 else []) + ([(r + 1, True)] if r < 3 else [])
                job.ranks[r].batch("0", calls)
        job.ranks[0].batch("0", [(1, True)])
        job.ranks[1].batch("0", [(0, False)])
        job.ranks[1].batch("0", [(2, True)])
        job.ranks[2].batch("0", [(1, False)])
        job.ranks[3].batch("0", [(2, False)], state="scheduled")
        self.expect(job, "missing_rank", [2])

    def test_coalesced_calls(self):
        job = jobs.Job(4)
        for _ in range(12):
            for r in range(4):
                job.ranks[r].coalesced("0", [("all_reduce", (64,)), ("all_reduce", (32,))])
        d, _ = self.verdict(job)
        self.assertEqual(d["state"], "healthy")
        for r in range(4):
            job.ranks[r].coalesced("0", [("all_reduce", (64,)), ("all_reduce", (8 if r == 1 else 32,))], state="scheduled")
        self.expect(job, "size_mismatch", [1])

    def test_a_missing_dump_accuses_nobody(self):
        job = jobs.Job(8)
        jobs.steps(job, 20, random.Random(19))
        for r in range(8):
            if r != 3:
                job.ranks[r].collective("0", state="scheduled")
        d = self.expect(job, "undetermined", [], leave_out=(3,))
        self.assertIn("rank 3", d["findings"][0]["title"])
        # Healthy, but one is not there: said, not judged.
        job = jobs.Job(8)
        jobs.steps(job, 20, random.Random(19))
        d = self.expect(job, "undetermined", [], leave_out=(3,))
        self.assertIn("no record of rank 3", d["findings"][0]["title"])

    def test_other_names_compressed_and_bundled(self):
        job = jobs.Job(4)
        jobs.steps(job, 20, random.Random(20))
        for r in (0, 1, 3):
            job.ranks[r].collective("0", state="scheduled")
        for name in ("comm_lib_trace_rank_{}", "nccl_trace_rank_node07_{}", "_dump_{}", "rank{}.pickle"):
            self.expect(job, "missing_rank", [2], name=name)
        folder = os.path.join(self.folder, "gz")
        os.makedirs(folder)
        for rank in job.ranks:
            with gzip.open(os.path.join(folder, f"nccl_trace_rank_{rank.rank}.gz"), "wb") as f:
                pickle.dump(rank.dump(), f)
        self.assertEqual(diagnose(folder)[0]["findings"][0]["who"]["ranks"], [2])
        bundle = os.path.join(self.folder, "all.pickle")
        with open(bundle, "wb") as f:
            pickle.dump({r.rank: r.dump() for r in job.ranks}, f)
        self.assertEqual(diagnose(bundle)[0]["findings"][0]["who"]["ranks"], [2])

    def test_a_pickle_that_would_run_code_runs_nothing(self):
        mark = os.path.join(self.folder, "owned")

        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {mark}",)

        dump = jobs.Job(1).ranks[0].dump()
        for protocol in range(6):
            path = os.path.join(self.folder, "nccl_trace_rank_0")
            with open(path, "wb") as f:
                pickle.dump(dict(dump, entries=[Evil()]), f, protocol=protocol)
            done = subprocess.run([RINGSCOPE, "diagnose", path], capture_output=True, text=True, check=False, timeout=60)
            self.assertIn("would run code", " ".join((done.stdout + done.stderr).split()))
        self.assertFalse(os.path.exists(mark))

    def test_a_dump_that_was_cut_short(self):
        job = jobs.Job(4)
        jobs.steps(job, 40, random.Random(21))
        for r in (0, 1, 3):
            job.ranks[r].collective("0", state="scheduled")
        folder = os.path.join(self.folder, "cut")
        job.write(folder)
        path = os.path.join(folder, "nccl_trace_rank_1")
        with open(path, "r+b") as f:
            f.truncate(os.path.getsize(path) * 2 // 3)
        d, _ = diagnose(folder)
        self.assertTrue(any("cut short" in s for s in d["not_seen"]), d["not_seen"])
        for finding in d["findings"]:  # what rank 1 called last is gone with the rest: it must not be taken for late
            self.assertNotEqual(finding["who"].get("ranks", []), [1])


if __name__ == "__main__":
    RINGSCOPE = sys.argv.pop(1)
    unittest.main()
