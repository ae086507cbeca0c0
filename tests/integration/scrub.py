"""Nothing that was seeded survives `ringscope scrub`, wherever it is put; what the tool promises of its files.

usage: scrub.py RINGSCOPE
"""
import gzip
import json
import os
import resource
import stat
import subprocess
import sys
import tempfile
import unittest

TOOL = ""
HOME = "/" + "home/"
HOST, USER, JOB = "wolpertinger17", "mfeuerstein", "projekt-zugspitze"
FQDN = HOST + ".rack9.acme-corp.com"
PASSWORD = "Hunter2!Sommer"
# Recognised by their form alone, wherever they stand.
FORMS = {
    "aws": "AKIAIOSFODNN7ABCDEFQ", "huggingface": "hf_QwErTyUiOpAsDfGhJkLzXcVbNm123456", "huggingface letters": "hf_abcdefghijkLMNopqrstuVWxyzABCDEFGH",
    "aws letters": "AKIAABCDEFGHIJKLMNOP", "github": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "wandb": "0f23456789abcdef0123456789abcdef01234567", "openai": "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}
# Learned from where programs print them.
NAMES = {"host": HOST, "user": USER, "job": JOB, "password": PASSWORD, "mail": "m.feuerstein@acme-corp.com", "fqdn": FQDN}
TEACH = f"""{HOST}:4242:4300 [0] NCCL INFO Bootstrap : Using eth0:10.31.7.44<0>
{FQDN}:4243:4301 [1] NCCL INFO Bootstrap : Using eth0:10.31.7.45<0>
SLURM_JOB_NAME={JOB} SLURM_JOB_USER={USER} SLURM_JOB_ID=8812345
git clone https://{USER}:{PASSWORD}@git.acme-corp.com/llm/{JOB}.git
author <m.feuerstein@acme-corp.com>
"""


def unicode_escapes(text):
    return "".join(f"\\u{ord(c):04x}" if c.isalnum() else c for c in text)


def half(text):
    return text[:len(text) // 2], text[len(text) // 2:]


PLACES = {
    "alone": lambda s: s,
    "json": lambda s: json.dumps({"a": [1, {"b": s}], "n": 3}),
    "json in json": lambda s: json.dumps({"line": json.dumps({"k": s})}),
    "json escapes": lambda s: '{"v": "' + unicode_escapes(s) + '"}',
    "single quotes": lambda s: f"call('{s}')",
    "backquotes": lambda s: f"see `{s}`, it is",
    "url query": lambda s: f"GET https://api.example.net/v1?x=1&v={s}&y=2 200",
    "url path": lambda s: f"wget https://files.example.net/{s}/a.bin",
    "traceback": lambda s: f'  File "/opt/app/{s}/run.py", line 3, in main\n    main("{s}")\nValueError: {s}',
    "colour around": lambda s: f"\x1b[31m{s}\x1b[0m",
    "colour inside": lambda s: "\x1b[1;31m".join(half(s)),
    "colour without its escape": lambda s: "[36m".join(half(s)),
    "hyperlink": lambda s: f"see what the terminal shows as a link in this line: \x1b]8;;https://x.example.net/{s}\x07{s}\x1b]8;;\x07" + " and so on" * 9,
    "zero width": lambda s: "\u200b".join(half(s)),
    "carriage return": lambda s: f"12%|##\r13%|## {s}\r14%|##",
    "assignment": lambda s: f"export THING={s}",
    "brackets": lambda s: f"[{s}]({s})<{s}>",
    "punctuation": lambda s: f"{s}, {s}; {s}: {s}. ({s})",
    "log prefix": lambda s: f"[rank3]: 2025-01-02 03:04:05,678 ERROR {s} failed",
    "umlauts": lambda s: f"größe «{s}» – ende",
    "tab": lambda s: f"a\t{s}\tb",
    "html": lambda s: f"&lt;b&gt;{s}&lt;/b&gt;",
    "python bytes": lambda s: f"b'{s}\\n'",
    "command line": lambda s: f"python train.py --thing {s} --other={s}",
}


class Scrub(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path

    def scrub(self, *words, stdin=b"", code=0):
        done = subprocess.run([TOOL, "scrub", *words], input=stdin, capture_output=True, timeout=120)
        self.assertEqual(code, done.returncode, done.stderr[-600:])
        return done.stdout, done.stderr.decode()

    def text(self, text):
        return self.scrub("-", stdin=text.encode())[0].decode()

    def test_secrets_by_their_form(self):
        for what, secret in FORMS.items():
            for place, put in PLACES.items():
                with self.subTest(secret=what, place=place):
                    out = self.text(put(secret) + "\n")
                    self.assertNotIn(secret, out)
                    self.assertNotIn(secret[4:20], out)

    def test_names_that_were_learned(self):
        for what, name in NAMES.items():
            for place, put in PLACES.items():
                if place in ("json escapes", "url path", "url query", "json in json", "json") and name == PASSWORD:
                    put = PLACES["alone"]  # its exclamation mark is not written so
                with self.subTest(name=what, place=place):
                    out = self.text(TEACH + put(name) + "\n")
                    self.assertNotIn(name.lower(), out.lower())
                    self.assertNotIn("feuerstein", out)
                    self.assertNotIn("acme-corp", out)

    def test_values_behind_names(self):
        for line in ("password: {}", "passwd={}", 'MYSQL_PWD="{}"', "{{'api_key': '{}'}}", '{{"secret": "{}"}}', "DB_PASSWORD={} x", "--auth-token {}",
                     '\\"client_secret\\": \\"{}\\"', "mysql://root:{}@db/x", "Authorization: Bearer {}", "AWS_SECRET_ACCESS_KEY={}",
                     "https://x.example.net/a?access_token={}&b=1", "SLACK_TOKEN='{}'", "token = \"{}\""):
            with self.subTest(line=line):
                out = self.text(line.format("Zu9kq7Rm2xWw") + "\nlater: Zu9kq7Rm2xWw\n")
                self.assertNotIn("Zu9kq7Rm2xWw", out)

    def test_what_is_no_secret_stays(self):
        for line in ("max_tokens=4096 pad_token_id=2 eos_token=</s> tokens: 8192", "NCCL_IB_PKEY=0x8001 NCCL_IB_HCA=mlx5_0,mlx5_1",
                     "rank 3 comm 0x5581dd7f3c40 commId 0x5d0ddbea78f8f50a busId 3b000 pid 4242 nranks 16",
                     "NCCL version 2.21.5+cuda12.4, driver 535.104.05, nvidia-cublas-cu12==12.1.3.1",
                     "Wait timeout after 1800000ms, keys: /default_pg/0//worker/global_comm/0", "0000:65:00.0 GPU-NIC 00:11 12:34:56.789",
                     "eth0 enp65s0f1np1 ib0 mlx5_bond_0 127.0.0.1:29500 0.0.0.0 169.254.3.4 fe80::1 ff02::1",
                     "c10d::ProcessGroupNCCL::watchdogHandler() std::vector<int>", "at (threading.py:324) torch/distributed/distributed_c10d.py:2806",
                     "_ZN4c10d16ProcessGroupNCCL8WorkNCCL12isCompletedEv undefined symbol: ncclMemFree", "/usr/lib/x86_64-linux-gnu/libnccl.so.2 /dev/shm/nccl-a1B2c3 /proc/1/maps",
                     "11 x 22/33 NET/IB P2P/IPC 12.5 GB/s"):
            with self.subTest(line=line):
                self.assertEqual(line, self.text(line + "\n").rstrip("\n"))

    def test_addresses_keep_their_nets(self):
        out = self.text("a 10.31.7.44:29500\nb 10.31.7.45<4432>\nc 10.31.8.1\nd 192.168.1.9\ne 10.31.7.44\n").split("\n")
        a, b, c, d, e = (line.split()[1].split(":")[0].split("<")[0] for line in out[:5])
        self.assertEqual(a, e)
        self.assertEqual(a.split(".")[:3], b.split(".")[:3])
        self.assertEqual(a.split(".")[:2], c.split(".")[:2])
        self.assertNotEqual(a.split(".")[2], c.split(".")[2])
        self.assertNotEqual(a.split(".")[0], d.split(".")[0])
        self.assertIn(":29500", out[0])
        self.assertIn("<4432>", out[1])

    def test_key_blocks(self):
        block = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq4\nZm9vYmFyYmF6cXV4\nZm9v\n-----END RSA PRIVATE KEY-----\n"
        out = self.text("before\n" + block + "after\n" + json.dumps({"k": block}) + "\n[rank0]: " + block.replace("\n", "\n[rank0]: ") + "end\n")
        for part in ("MIIEp", "Zm9v"):
            self.assertNotIn(part, out)
        for part in ("before\n", "after\n", "end\n"):
            self.assertIn(part, out)
        self.assertIn("[rank1]: NCCL WARN x", self.text("-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKC\n[rank1]: NCCL WARN x\n"), "cut short, it must end")

    def test_the_same_mask_in_all_files(self):
        self.write("in/a.log", TEACH)
        self.write("in/b.txt.gz", gzip.compress(f"{FQDN} said to {HOST}\n".encode()))
        self.write(f"in/{HOST}.start.1.kernel.txt", "[  1.0] NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.\n")
        self.write(f"in/{JOB}/{HOST}/rank-3.log", f"user {USER}\n")
        self.write("in/acme-secret-run-rank5.log", "hello\n")
        self.scrub("--out", self.path("out"), self.path("in"))
        found = {os.path.relpath(os.path.join(root, n), self.path("out")) for root, _, names in os.walk(self.path("out")) for n in names}
        self.assertEqual({"in/a.log", "in/b.txt.gz", "in/host-1.start.1.kernel.txt", "in/job-1/host-1/rank-3.log", "in/file-1-rank5.log"}, found)
        with gzip.open(self.path("out/in/b.txt.gz")) as f:
            self.assertRegex(f.read().decode(), r"^host-1\.domain-\d\.example said to host-1\n$")

    def test_a_map_gives_equal_masks_later(self):
        mapping = self.path("map")
        first = self.write("one.log", f"hostname={HOST}\npeer 10.1.2.3\n")
        second = self.write("two.log", f"hostname=aardvark5\nhostname={HOST}\npeer 10.9.9.9\npeer 10.1.2.3\n")
        os.umask(0)
        out1, _ = self.scrub(f"--map={mapping}", first)
        self.assertEqual(0o600, stat.S_IMODE(os.stat(mapping).st_mode))
        out2, _ = self.scrub(f"--map={mapping}", second)
        self.assertEqual(b"hostname=host-1\npeer 240.0.0.1\n", out1)
        lines = out2.decode().split("\n")
        self.assertEqual(["hostname=host-2", "hostname=host-1", "peer 240.0.0.1"], [lines[0], lines[1], lines[3]])
        self.scrub(f"--map={self.path('out', 'map')}", f"--out={self.path('out')}", first, code=64)
        self.write("other", "what\tis\tthis\n")
        _, said = self.scrub(f"--map={self.path('other')}", first, code=64)
        self.assertIn("line 1: not a map", said)

    def test_nothing_unread_is_copied(self):
        self.write("in/core", os.urandom(50000))
        self.write("in/code.pkl", b"\x80\x04cposix\nsystem\n(S'x'\ntR.")
        self.write("in/a.trace", b"RNGTRC01" + os.urandom(400))
        self.write("in/masks", "ringscope scrub map 1\nhost\t1\tzeus\n")
        self.write("in/run.log", "NCCL version 2.21.5\n")
        _, said = self.scrub("--out", self.path("out"), self.path("in"), code=65)
        self.assertEqual(["run.log"], os.listdir(self.path("out/in")))
        for name in ("core", "code.pkl", "a.trace", "masks"):
            self.assertIn(name, said)

    def test_existing_files_stay(self):
        source = self.write("a.log", f"hostname={HOST}\n")
        self.write("out/a.log", "mine")
        self.scrub("--out", self.path("out"), source, code=70)
        with open(self.path("out/a.log")) as f:
            self.assertEqual("mine", f.read())
        os.remove(self.path("out/a.log"))
        os.symlink(self.path("elsewhere"), self.path("out/a.log"))
        self.scrub("--out", self.path("out"), source, code=70)
        self.assertFalse(os.path.exists(self.path("elsewhere")))

    def test_encodings_and_lines(self):
        for data in (("\ufeff" + f"hostname={HOST}\r\n").encode("utf-16"), b"\xef\xbb\xbf" + f"hostname={HOST}\n".encode(),
                     b"\xfc\xff hostname=" + HOST.encode() + b" \xe4\n", f"hostname={HOST}".encode()):
            out, _ = self.scrub("-", stdin=data)
            self.assertNotIn(HOST.encode(), out)
            self.assertIn(b"hostname=host-1", out)
        self.assertTrue(self.scrub("-", stdin=f"größe {HOME}{USER}/x 日本語\n".encode())[0].decode().endswith("日本語\n"))

    def test_wrapped_by_a_terminal(self):
        lines = [f"{HOST}:70:88 [0] NCCL INFO channel {i} uses the path of {HOST} and of {HOST} to {HOST}" for i in range(12)]
        wrapped = "".join(line[:80] + "\n" + line[80:] + "\n" for line in lines)
        out = self.text(wrapped)
        self.assertNotIn(HOST[:9], out)

    def test_long_lines_and_little_memory(self):
        limit = None if os.environ.get("RINGSCOPE_SANITIZED") else lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        big = self.path("big.log")
        with open(big, "wb") as f:
            f.write(b"x" * (20 << 20) + b"\n")
            f.write(f'{{"h": "{FORMS["github"]}", '.encode() * 200000 + b"\n")
        done = subprocess.run([TOOL, "scrub", big], stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit, timeout=240)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertNotIn(b"ghp_", done.stdout)
        self.assertIn(b"bytes without a break left out", done.stdout)
        self.assertEqual(200000, done.stdout.count(b"secret-1"))

    def test_words_of_the_user(self):
        source = self.write("a.log", "loading chimera-70b and xchimerax\n")
        out, _ = self.scrub("--also=chimera", source)
        self.assertEqual(b"loading name-1-70b and xname-1x\n", out)

    def test_diagnose_scrubbed(self):
        source = self.write(f"{JOB}/rank-1.log", TEACH + f"{HOST}:70:88 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n")
        for form in ("text", "json", "html"):
            done = subprocess.run([TOOL, "diagnose", "--scrubbed", f"--format={form}", source], capture_output=True, text=True, timeout=60)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn("posix_fallocate", done.stdout)
            self.assertIn("host-1", done.stdout)
            for name in (HOST, USER, JOB, self.dir, "10.31.7"):
                self.assertNotIn(name, done.stdout)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    unittest.main(verbosity=2)
