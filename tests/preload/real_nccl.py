"""The real libnccl.so.2, without a GPU: calls go through, errors come back in NCCL's words and are recorded, the program's output is the same.

usage: real_nccl.py BUILD_TREE        exit status 77: there is no such library, or no compiler's headers for it
"""
import glob
import os
import re
import subprocess
import sys

from common import Place, check

PROGRAM = """
#include <nccl.h>
#include <stdio.h>
int main() {
  int version = 0;
  ncclResult_t r = ncclGetVersion(&version);
  printf("version %d %d\\n", r, version);
  ncclUniqueId id;
  r = ncclGetUniqueId(&id);
  printf("id %d\\n", r);
  ncclComm_t comm = nullptr;
  r = ncclCommInitRank(&comm, 1, id, 0);
  printf("init %d %s\\n", r, ncclGetErrorString(r));
  r = ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, nullptr, nullptr);
  printf("all-reduce %d %s\\n", r, ncclGetLastError(nullptr));
  return 0;
}
"""


def find():
    for home in filter(None, [os.environ.get("NCCL_HOME"), "/usr/local/cuda", "/usr"]):
        header = os.path.join(home, "include", "nccl.h")
        for library in sorted(glob.glob(os.path.join(home, "lib*", "libnccl.so.2")) + glob.glob(os.path.join(home, "lib", "*", "libnccl.so.2"))):
            if os.path.exists(header):
                return header, library
    return None


def main():
    found = find()
    if found is None:
        print("SKIPPED: no real libnccl.so.2 with nccl.h under NCCL_HOME, /usr/local/cuda, /usr")
        return 77
    header, library = found
    place = Place(sys.argv[1])
    source, program = os.path.join(place.root, "program.cc"), os.path.join(place.root, "program")
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    built = subprocess.run(["c++", source, "-o", program, f"-I{os.path.dirname(header)}", "-I/usr/local/cuda/include", library], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        print(f"SKIPPED: it cannot be built against: {built.stderr[:300]}")
        return 77
    os.remove(source)
    paths = {"LD_LIBRARY_PATH": os.path.dirname(library), "NCCL_DEBUG": "WARN"}
    plain = lambda text: re.sub(r"\[[\d :-]+\]|:\d+:\d+", "", text.decode())
    bare, wrapped = place.run([program], preload=False, **paths), place.run([program], **paths)
    check(plain(bare.stdout) == plain(wrapped.stdout), f"the same output:\n{bare.stdout.decode()}\n{wrapped.stdout.decode()}")
    check(bare.returncode == wrapped.returncode == 0, "the same status")
    if b"init 0 " in wrapped.stdout:
        print("there is a GPU here: the errors are not tried")
        return 0
    records = place.records()
    host = records[0]["host"]
    check(host["first_nccl"]["function"] == "ncclCommInitRank" and host["first_nccl"]["code"] == 1, f"the error is recorded: {host}")
    check(int(host["nccl_errors"]) == 2, f"both are counted: {host}")
    print(f"{library}: passes through; {wrapped.stdout.decode().splitlines()[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
