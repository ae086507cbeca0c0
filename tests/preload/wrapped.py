"""Every wrapped function reaches the real one and hands its result back; what it records of calls, errors and copies.

usage: wrapped.py BUILD_TREE
"""
import os
import re
import sys

from common import Place, check


def main():
    tree = sys.argv[1]
    place = Place(tree)
    here = os.path.join(place.tree, "tests", "preload")
    program = os.path.join(here, "preload_wrapped")
    paths = {"LD_LIBRARY_PATH": os.path.join(here, "fake")}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "recorder", "flight", "host_calls.def"), encoding="utf-8") as f:
        names = re.findall(r"^RINGSCOPE_(?:CALL|VARIANT)\(\w+, \d+, (\w+),", f.read(), re.M)
    bare = place.run([program], preload=False, **paths)
    check(bare.returncode == 0, f"without us: {bare.stderr}")
    check([line for line in bare.stdout.decode().split() if line.isidentifier()][2:] == names, "the program calls the list")

    wrapped = place.run([program], **paths)
    check(wrapped.returncode == 0 and wrapped.stdout == bare.stdout, f"the same calls and results, in the same order:\n{wrapped.stdout.decode()}")
    check(not wrapped.stderr, f"says nothing: {wrapped.stderr}")
    records = place.records()
    check(len(records) >= 1, f"a record: {place.left()}")
    host = records[0]["host"]
    check(host["nccl"] and host["cuda_runtime"] and host["cuda_driver"], f"all three seen: {host}")
    check(int(host["nccl_errors"]) == 0 and int(host["cuda_errors"]) == 0, f"no errors: {host}")
    kinds = {c["kind"] for c in host["copies"]}
    check({"TO_DEVICE", "TO_HOST", "ON_DEVICE", "ANY", "PEER", "MEMSET"} <= kinds, f"kinds of copies: {kinds}")
    comm = records[0]["communicators"][0]
    check(comm["n_ranks"] == 4 and comm["rank"] == 2 and not comm["completion_visible"], f"the communicator: {comm}")
    op = comm["operations"][0]
    check(op["func"] == "ALL_REDUCE" and int(op["count"]) == 1000 and op["datatype"] == "FLOAT32" and op["reduction"] == 1, f"the operation: {op}")

    # Errors: handed back as they are, the first one kept.
    for name, code, field in (("cudaMalloc", 2, "first_cuda"), ("ncclSend", 3, "first_nccl"), ("cuMemFree_v2", 700, "sticky"),
                              ("cudaStreamSynchronize", 719, "sticky")):
        place = Place(tree)
        bare = place.run([program], preload=False, RINGSCOPE_FAKE_RESULT=f"{name}={code}", **paths)
        wrapped = place.run([program], RINGSCOPE_FAKE_RESULT=f"{name}={code}", **paths)
        check(wrapped.stdout == bare.stdout and f"-> {code}\n" in wrapped.stdout.decode(), f"{name}: the result comes back")
        error = place.records()[0]["host"][field]
        check(error["function"] == name and error["code"] == code, f"{name}: {error}")
    # What is no error.
    for name, code in (("cudaStreamSynchronize", 600), ("ncclAllReduce", 7)):
        place = Place(tree)
        place.run([program], RINGSCOPE_FAKE_RESULT=f"{name}={code}", **paths)
        host = place.records()[0]["host"]
        check(int(host["nccl_errors"]) == 0 and int(host["cuda_errors"]) == 0, f"{name}={code} is no error: {host}")

    # Off, and without the libraries behind: nothing but the wrapped libraries' own error.
    place = Place(tree)
    off = place.run([program], RINGSCOPE="0", **paths)
    check(off.returncode == 0 and not place.left(), f"RINGSCOPE=0 leaves nothing: {place.left()}")
    print(f"{len(names)} functions, each called once: through and back")


if __name__ == "__main__":
    main()
