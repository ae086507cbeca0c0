"""The real py-spy: where the Python code of a hung rank stands lands in the evidence.

usage: real_py_spy.py BUILD_TREE [--py-spy PROGRAM]

Two ranks in Python on the simulated NCCL. Rank 1 waits for its data in a function of its own; rank 0 in the collective. Installs py-spy
with pip into a scratch environment unless it is named or on PATH. Exit status 77: there is none, or it may not look into processes here.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys

from common import Place, check

PROGRAM = """
import ctypes, os, sys, time
nccl, cuda = (ctypes.CDLL(os.path.join(sys.argv[1], f)) for f in ('libnccl.so.2', 'libcudart.so.12'))
rank, file = int(os.environ['RANK']), sys.argv[2]
class Id(ctypes.Structure):
    _fields_ = [('internal', ctypes.c_char * 128)]
def exchange():
    own = Id()
    if rank == 0:
        nccl.ncclGetUniqueId(ctypes.byref(own))
        with open(file + '.new', 'wb') as f: f.write(bytes(own))
        os.rename(file + '.new', file)
    while not os.path.exists(file): time.sleep(0.01)
    return Id.from_buffer_copy(open(file, 'rb').read())
def wait_for_the_next_batch(step):
    while rank == 1 and step == 30: time.sleep(0.05)
cuda.cudaSetDevice(rank)
comm, stream, data = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_float * 1024)()
cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
assert nccl.ncclCommInitRank(ctypes.byref(comm), 2, exchange(), rank) == 0
for step in range(60):
    wait_for_the_next_batch(step)
    nccl.ncclAllReduce(data, data, ctypes.c_size_t(1024), 7, 0, comm, stream)
    cuda.cudaStreamSynchronize(stream)
"""


def find_py_spy(asked, root):
    if asked or shutil.which("py-spy"):
        return asked or shutil.which("py-spy")
    venv = os.path.join(root, "venv")
    for command in ([sys.executable, "-m", "venv", venv], [os.path.join(venv, "bin", "pip"), "install", "-q", "py-spy"]):
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return None
    return os.path.join(venv, "bin", "py-spy")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree")
    parser.add_argument("--py-spy")
    args = parser.parse_args()
    place = Place(args.tree)
    spy = find_py_spy(args.py_spy, place.root)
    if spy is None:
        print("SKIPPED: py-spy cannot be installed here (pip install py-spy)")
        return 77
    if subprocess.run([spy, "dump", "--pid", str(os.getpid())], capture_output=True, check=False).returncode != 0:
        print("SKIPPED: py-spy may not look into this process (CAP_SYS_PTRACE), or does not know this Python")
        return 77
    script, out = os.path.join(place.root, "train.py"), os.path.join(place.root, "out")
    with open(script, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    ranks = []
    for rank in (0, 1):
        env = place.environment(False, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), RINGSCOPE_STALL_SECONDS="1", RINGSCOPE_JOB="j",
                                PATH=os.path.dirname(spy) + ":" + os.environ["PATH"])
        del env["RINGSCOPE_DIR"]
        ranks.append(subprocess.Popen([place.tool, "run", f"--dir={out}", "--", "timeout", "-s", "KILL", "10",
                                       sys.executable, script, os.path.join(place.tree, "sim"), os.path.join(place.root, "id")],
                                      env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    said = [p.communicate(timeout=120)[1] for p in ranks]
    text = ""
    for stacks in glob.glob(os.path.join(out, "evidence", "*.stall.*stacks.txt")):
        with open(stacks, encoding="utf-8") as f:
            text += f.read()
    check(text, f"py-spy was asked: {said}")
    check("rank 1 (pid" in text and "wait_for_the_next_batch" in text.split("rank 1 (pid")[1].split("rank 0 (pid")[0], f"the stack of the rank that did not come: {text}")
    done = subprocess.run([place.tool, "diagnose", "--format=json", out], capture_output=True, text=True, check=False)
    diagnosis = json.loads(done.stdout)
    first = diagnosis["findings"][0]
    check(first["who"]["ranks"] == [1], f"the rank that did not come is named: {done.stdout[:2000]}")
    check("wait_for_the_next_batch" in done.stdout, f"and where its program stands: {[f['kind'] for f in diagnosis['findings']]} {done.stdout[:3000]}")
    print(f"rank 1 {first['kind']}; its stack: wait_for_the_next_batch")
    return 0


if __name__ == "__main__":
    sys.exit(main())
