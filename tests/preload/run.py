"""ringscope run: what it sets, what it leaves as it was, and that nobody can tell that it stands beside the command.

usage: run.py BUILD_TREE
"""
import os
import signal
import subprocess
import sys
import time

from common import Place, check

SHOW = "echo L=$LD_PRELOAD P=$NCCL_PROFILER_PLUGIN D=$NCCL_DEBUG F=$NCCL_DEBUG_FILE S=$NCCL_DEBUG_SUBSYS R=$RINGSCOPE_DIR T=$NCCL_TOPO_DUMP_FILE G=$NCCL_GRAPH_DUMP_FILE"


def fields(text):
    return dict(word.split("=", 1) for word in text.decode().split())


def main():
    tree = sys.argv[1]
    place = Place(tree)
    run = [place.tool, "run", f"--dir={place.root}/evidence"]

    # Status, output, signals.
    for script in ("exit 0", "exit 7", "echo out; echo err >&2; exit 3", "kill -9 $$", "kill -SEGV $$", "kill -TERM $$"):
        bare = place.run(["/bin/sh", "-c", script], preload=False)
        seen = place.run([*run, "--", "/bin/sh", "-c", script], preload=False)
        check((bare.returncode, bare.stdout, bare.stderr) == (seen.returncode, seen.stdout, seen.stderr), f"{script}: {bare}, {seen}")
    gone = place.run([*run, "--", "/no/such/program"], preload=False)
    check(gone.returncode == 127 and b"No such file" in gone.stderr, f"no such program: {gone}")
    check(place.run([*run, "--", "/etc/passwd"], preload=False).returncode == 126, "a file that is no program")
    check(place.run(run, preload=False).returncode == 64, "no command")
    echoed = subprocess.run([*run, "--", "/bin/cat"], input=b"\x00\xff bytes\n", capture_output=True, env=place.environment(False), check=True)
    check(echoed.stdout == b"\x00\xff bytes\n", "standard input is the command's")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        script = f"trap 'echo got {int(number)}; exit 4' {int(number)}; echo ready; while :; do sleep 0.05; done"
        process = subprocess.Popen([*run, "--", "/bin/sh", "-c", script], stdout=subprocess.PIPE, env=place.environment(False))
        check(process.stdout.readline() == b"ready\n", "it runs")
        process.send_signal(number)
        out = process.communicate(timeout=20)[0]
        check(out == f"got {int(number)}\n".encode() and process.returncode == 4, f"signal {number}: {out} {process.returncode}")
    # Stopped and continued with it.
    process = subprocess.Popen([*run, "--", "/bin/sh", "-c", "kill -STOP $$; exit 6"], env=place.environment(False))
    deadline = time.time() + 10
    while time.time() < deadline:
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "T":
                break
        time.sleep(0.02)
    check(time.time() < deadline, "it stops with the command")
    process.send_signal(signal.SIGCONT)
    check(process.wait(timeout=20) == 6, "and goes on with it")

    # Environment.
    said = fields(place.run([*run, "--", "/bin/sh", "-c", SHOW], preload=False).stdout)
    check(said["P"] == place.library and said["L"].split(":")[0] == place.library, f"both doors: {said}")
    check(said["D"] == "INFO" and said["F"].startswith(f"{place.root}/evidence/"), f"NCCL's log: {said}")
    check(said["T"] == "" and said["G"] == "", f"no topology or graph dump: {said}")
    check(said["R"] == f"{place.root}/evidence", f"--dir goes before RINGSCOPE_DIR: {said}")
    kept = place.run([*run, "--", "/bin/sh", "-c", SHOW], preload=False, NCCL_PROFILER_PLUGIN="/opt/other.so", NCCL_DEBUG="WARN")
    said = fields(kept.stdout)
    check(said["P"] == "/opt/other.so" and b"NCCL_PROFILER_PLUGIN stays" in kept.stderr, f"another plugin is left: {kept}")
    check(said["D"] == "WARN" and said["F"] == "", f"NCCL's log is left: {said}")
    other = "/lib/x86_64-linux-gnu/libm.so.6" if os.path.exists("/lib/x86_64-linux-gnu/libm.so.6") else place.newer
    said = fields(place.run([*run, "--", "/bin/sh", "-c", SHOW], preload=False, LD_PRELOAD=other).stdout)
    check(said["L"].split(":")[0] == other and place.library in said["L"], f"an existing LD_PRELOAD keeps its place: {said}")
    said = fields(place.run([*run, "--plugin=no", "--preload=no", "--nccl-log=no", "--", "/bin/sh", "-c", SHOW], preload=False).stdout)
    check(said["P"] == "" and said["L"] == "" and said["D"] == "", f"switched off: {said}")
    lost = place.run([*run, "--library=/nowhere.so", "--", "/bin/sh", "-c", "exit 8"], preload=False)
    check(lost.returncode == 8 and b"nothing will be recorded" in lost.stderr, f"the job runs without us: {lost}")
    with open(f"{place.root}/text.so", "w", encoding="utf-8") as f:
        f.write("no library " * 100)
    bad = place.run([*run, f"--library={place.root}/text.so", "--", "/bin/sh", "-c", "exit 8"], preload=False)
    check(bad.returncode == 8 and b"nothing will be recorded" in bad.stderr and b"invalid ELF" in bad.stderr, f"a library of another kind: {bad}")

    # A job that hangs and is killed: its flight files are kept, and one line says what to do next.
    job = Place(tree)
    evidence = os.path.join(job.root, "evidence")
    ranks = []
    for rank in (0, 1):
        env = job.environment(False, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), RINGSCOPE_STALL_SECONDS="1",
                              RINGSCOPE_SIM_FAULTS="rank=1 op=31 do=absent", LD_LIBRARY_PATH=os.path.join(job.tree, "sim"))
        del env["RINGSCOPE_DIR"]
        ranks.append(subprocess.Popen([job.tool, "run", f"--dir={evidence}", "--", "timeout", "-s", "KILL", "6", os.path.join(job.tree, "sim", "workload"),
                                       "dp", os.path.join(job.root, "id"), "20"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
    said = [p.communicate(timeout=60)[1].decode() for p in ranks]
    check(all(f"ringscope diagnose {evidence}" in text for text in said), f"what next: {said}")
    check(len(os.listdir(os.path.join(evidence, "flight"))) == 2, "both flight files are kept")
    verdict = subprocess.run([job.tool, "diagnose", "--format=json", evidence], capture_output=True, text=True, check=False)
    check(verdict.returncode == 1 and '"host_blocked"' in verdict.stdout, f"the verdict: {verdict.stdout[:600]}")
    # Commands that fail before NCCL leave no record; that they did is told all the same. A command that succeeds leaves nothing.
    early = os.path.join(job.root, "early")
    for rank in range(3):
        env = job.environment(False, RANK=str(rank), WORLD_SIZE="3")
        failed = subprocess.run([job.tool, "run", f"--dir={early}", "--", "/bin/sh", "-c", "exit 64"], env=env, capture_output=True, text=True, check=False)
        check(failed.returncode == 64 and failed.stderr == "", f"a usage error: {failed}")
    subprocess.run([job.tool, "run", f"--dir={early}", "--", "/bin/true"], env=job.environment(False), check=True)
    check(len([n for n in os.listdir(os.path.join(early, "evidence")) if ".end." in n]) == 3, f"a file for each: {os.listdir(os.path.join(early, 'evidence'))}")
    said = subprocess.run([job.tool, "diagnose", "--format=json", early], capture_output=True, text=True, check=False)
    check(said.returncode == 2 and '"state": "unknown"' in said.stdout.replace('":"', '": "') and
          "No communicator was created as far as is recorded: 3 commands (ranks 0-2) ended with exit code 64" in said.stdout, f"no all-clear: {said}")
    lost = subprocess.run([job.tool, "run", f"--dir={job.root}/lost", "--preload=no", "--plugin=no", "--", "/bin/sh", "-c", "exit 3"],
                          env=job.environment(False), capture_output=True, text=True, check=False)
    check(lost.returncode == 3 and not os.path.exists(f"{job.root}/lost/evidence"), f"who records nothing concludes nothing: {lost}")
    print("ringscope run: status, output, signals, environment, evidence")


if __name__ == "__main__":
    main()
