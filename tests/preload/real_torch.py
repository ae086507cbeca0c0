"""The real PyTorch (its CUDA build from the package index, no GPU) under LD_PRELOAD and with the profiler plugin's variable set.

usage: real_torch.py BUILD_TREE [--python PYTHON_WITH_TORCH]

Installs torch with pip into a scratch environment unless --python or RINGSCOPE_TORCH_PYTHON names one that has it. Exit status 77: it
cannot be installed here.
"""
import argparse
import os
import re
import subprocess
import sys

from common import Place, check

IMPORT = """
import torch
print(torch.__version__, torch.cuda.nccl.version(), torch.cuda.is_available())
"""
SYMBOLS = """
import ctypes, torch
# Which object each of the names is bound to that host and library could both carry.
import re
maps = open('/proc/self/maps').read()
print(sorted({line.split()[-1].rsplit('/', 1)[-1] for line in maps.splitlines() if 'protobuf' in line or 'absl' in line}))
"""
LOADER = """
import torch, torch.utils.data as data
class Set(data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.tensor([i])
print(sum(int(b.sum()) for b in data.DataLoader(Set(), num_workers=3, batch_size=8)))
"""
GLOO = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29517', RANK=str(rank), WORLD_SIZE='2')
    dist.init_process_group('gloo', rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    step = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(5):
        step.zero_grad(); model(torch.ones(8, 4)).sum().backward(); step.step()
    if rank == 0: print('trained', round(float(model.module.weight.abs().sum()) > 0))
    dist.destroy_process_group()
if __name__ == '__main__':
    torch.manual_seed(0)
    mp.spawn(work, nprocs=2)
"""
NCCL = """
import os, torch, torch.distributed as dist
os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29518', RANK='0', WORLD_SIZE='1')
try:
    dist.init_process_group('nccl'); dist.all_reduce(torch.ones(1).cuda())
except Exception as e:
    print(type(e).__name__)
"""


def python_with_torch(asked, root):
    for python in filter(None, [asked, os.environ.get("RINGSCOPE_TORCH_PYTHON")]):
        return python
    venv = os.path.join(root, "venv")
    made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return None
    got = subprocess.run([os.path.join(venv, "bin", "pip"), "install", "-q", "torch", "numpy"], capture_output=True, text=True, check=False)
    return os.path.join(venv, "bin", "python") if got.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree")
    parser.add_argument("--python")
    args = parser.parse_args()
    scratch = Place(args.tree)
    python = python_with_torch(args.python, scratch.root)
    if python is None:
        print("SKIPPED: PyTorch cannot be installed here (pip install torch)")
        return 77
    for name, program in (("import", IMPORT), ("symbols", SYMBOLS), ("data loader", LOADER), ("gloo", GLOO), ("nccl without a GPU", NCCL)):
        for what, more in (("preloaded", {}), ("preloaded and plugin", {"NCCL_PROFILER_PLUGIN": scratch.library})):
            place = Place(args.tree)
            script = os.path.join(place.root, "program.py")
            with open(script, "w", encoding="utf-8") as f:
                f.write(program)
            bare = place.run([python, "-W", "ignore", script], preload=False, timeout=600)
            wrapped = place.run([python, "-W", "ignore", script], timeout=600, **more)
            check(bare.returncode == wrapped.returncode and bare.stdout == wrapped.stdout,
                  f"{name}, {what}: {bare.stdout!r} {bare.returncode} without us, {wrapped.stdout!r} {wrapped.returncode} with us: {wrapped.stderr[-800:]!r}")
            os.remove(script)
            check(not [f for f in place.left() if not f.endswith(".pyc")], f"{name}, {what} leaves {place.left()}")
            print(f"{name}, {what}: {wrapped.stdout.decode().strip()[:120]}")
    # Whom the loader binds what to.
    place = Place(args.tree)
    binding = lambda preload: place.run([python, "-W", "ignore", "-c", IMPORT], preload=preload, timeout=600, LD_DEBUG="bindings").stderr.decode(errors="replace")
    with_us, without = binding(True), binding(False)
    check(re.search(r"libtorch_cuda\.so .* to .*libringscope\.so .*ncclGetVersion", with_us), "torch.cuda.nccl.version() passes the wrapper")
    foreign = lambda text: {m for m in re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(\S+)'", text)
                            if re.search("protobuf|absl|__cxa|_ZNSt", m[2])}
    check(foreign(without) <= foreign(with_us) | {m for m in foreign(without) if "ld-linux" in m[1]}, "symbols of protobuf, abseil and the C++ library stay bound as they were")
    ours = [m for m in re.findall(r"binding file \S+ \[0\] to \S*libringscope\S* \[0\]: normal symbol `(\S+)'", with_us) if not re.match("nccl|cuda|cu[A-Z]", m)]
    check(not ours, f"nothing else is bound to us: {ours[:5]}")
    print(f"{len(foreign(with_us))} bindings of protobuf, abseil and the C++ library as without us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
