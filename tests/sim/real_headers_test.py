"""examples/train.cc built against the real headers of CUDA and NCCL, run on the stand-ins.

usage: real_headers_test.py SIM_FOLDER SOURCE_TREE CXX

Headers are looked for under CUDA_HOME, NCCL_HOME, CPATH, /usr/local/cuda and the compiler's own places. Exit status 77: there are none.
"""
import os
import subprocess
import sys
import tempfile


def include_folders():
    places = [os.environ[v] for v in ("CUDA_HOME", "CUDA_PATH", "NCCL_HOME") if os.environ.get(v)] + ["/usr/local/cuda", "/usr"]
    folders = [os.path.join(p, "include") for p in places]
    return folders + [p for p in os.environ.get("CPATH", "").split(":") if p]


def main():
    sim, source, compiler = sys.argv[1:4]
    found = {}
    for header in ("cuda_runtime.h", "nccl.h"):
        found[header] = next((f for f in include_folders() if os.path.exists(os.path.join(f, header))), None)
        if found[header] is None:
            print(f"SKIPPED: no real {header} under {', '.join(include_folders())}")
            return 77
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "train")
        subprocess.run([compiler, "-std=c++17", os.path.join(source, "examples", "train.cc"), "-o", program, "-L", sim, "-l:libcudart.so.12",
                        "-l:libnccl.so.2", *(f"-I{f}" for f in dict.fromkeys(found.values()))], check=True)
        ranks = [subprocess.Popen([program, os.path.join(scratch, "id"), "5"], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "RANK": str(r), "WORLD_SIZE": "3", "LOCAL_RANK": str(r), "LD_LIBRARY_PATH": sim})
                 for r in range(3)]
        said = [p.communicate(timeout=60)[0] for p in ranks]
    if any(p.returncode for p in ranks) or said[0].count("gradient sum 3\n") != 5:
        print(f"statuses {[p.returncode for p in ranks]}, rank 0 said:\n{said[0]}")
        return 1
    print("built against", ", ".join(f"{f}/{h}" for h, f in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
