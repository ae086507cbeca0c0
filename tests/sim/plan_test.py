"""The plans of the NCCL stand-in against those of real NCCL on the same machines.

usage: plan_test.py SIM_FOLDER TOPOLOGY_FOLDER [--show]

Every capture of tests/corpus/topology describes its machine (topo.host*.xml) and holds NCCL's log. Compared: the transport of every
pair of ranks that NCCL connected, the number of channels, how many edges of a ring leave NVLink, and whether initialisation fails.
What is known to differ is listed in KNOWN (capture: parts of the messages); what is listed and has come to agree is a failure too.
Not compared: the order of ranks within rings of equal cost, the bandwidth of a channel, trees.
"""
import argparse
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

KNOWN = {}


def machine_text(path):
    root = ET.parse(path).getroot()
    bus = lambda b: b.split(":")[1]
    lines, gpus, lanes = [], {}, []
    sm, gdr, switch = 90, 0, False
    nics = 0
    for cpu in root.findall("cpu"):
        def walk(element, above):
            nonlocal sm, gdr, switch, nics
            for pci in element.findall("pci"):
                here = bus(pci.get("busid"))
                for gpu in pci.findall("gpu"):
                    n = int(gpu.get("dev"))
                    gpus[pci.get("busid")] = n
                    sm, gdr = int(gpu.get("sm")), int(gpu.get("gdr"))
                    lines.append(f"gpu {n} bus {here} pci {above or here} cpu {cpu.get('numaid')}")
                    for link in gpu.findall("nvlink"):
                        lanes.append((n, link.get("target"), int(link.get("count")), link.get("tclass")))
                        switch |= link.get("tclass") == "0x068000"
                for _ in pci.findall("nic"):
                    lines.append(f"nic n{nics} bus {here} pci {above or here} cpu {cpu.get('numaid')} gbps 400")
                    nics += 1
                walk(pci, here)
        walk(cpu, None)
    head = [f"sm {sm}", f"lane {20.6 if sm >= 90 else 20.0}", f"gdr {gdr}"] + (["switch"] if switch else [])
    for n, target, count, kind in lanes:
        lines.append(f"lanes {n} {count}" if kind == "0x068000" else f"lanes {n}-{gpus[target]} {count}" if n < gpus[target] else "#")
    return "\n".join(head + lines) + "\n"


def real(folder):
    text = "".join(gzip.open(f, "rt", errors="replace").read() for f in sorted(glob.glob(os.path.join(folder, "*.log.gz"))))
    vias = {}
    for a, b, via in re.findall(r"Channel \d+(?:/\d+)? : (\d+)\[\d+\] -> (\d+)\[\d+\] (?:\[\w+\] )?via ([\w/]+)", text):
        kind = via.split("/")[0].lower() + ("/indirect" if "indirect" in via else "")
        vias.setdefault((int(a), int(b)), set()).add(kind)
    channels = re.search(r"(\d+) coll channels", text)
    ring = re.search(r"Channel 00/\d+ :((?: +\d+)+)", text)
    return vias, int(channels.group(1)) if channels else 0, [int(r) for r in ring.group(1).split()] if ring else [], "P2P is disabled between NVLINK" in text


WORD = {"direct": "p2p", "nvlink": "p2p", "pcie": "p2p", "indirect": "p2p/indirect", "shm": "shm", "net": "net"}


def compare(sim, folder):
    hosts = sorted(glob.glob(os.path.join(folder, "topo.host*.xml")))
    vias, channels, ring, refused = real(folder)
    name = os.path.basename(folder)
    environment = dict(os.environ)
    if "P2P" in name and "DISABLE" in name:
        environment["NCCL_P2P_DISABLE"] = "1"
    if "SHM" in name:
        environment["NCCL_SHM_DISABLE"] = "1"
    with tempfile.TemporaryDirectory() as scratch:
        files = []
        for host in hosts:
            files.append(os.path.join(scratch, os.path.basename(host) + ".machine"))
            with open(files[-1], "w", encoding="utf-8") as f:
                f.write(machine_text(host))
                if "driver_says_no_p2p" in name:
                    f.write("refuse 0-5\nrefuse 0-1\n" if "dgx1v" not in name else "refuse 0-1\nrefuse 0-4\n")
        plan = json.loads(subprocess.run([os.path.join(sim, "plan"), *files], env=environment, capture_output=True, text=True, check=True).stdout)
    faults = []
    if refused != (plan["refused"][0] >= 0):
        faults.append(f"refused peer-to-peer: NCCL {refused}, stand-in {plan['refused']}")
    if not channels:
        return faults, 0
    for (a, b), kinds in sorted(vias.items()):
        said = WORD[plan["transports"][f"{a}-{b}"]]
        if kinds != {said}:
            faults.append(f"{a}->{b}: NCCL {sorted(kinds)}, stand-in {said}")
    if channels != plan["channels"]:
        faults.append(f"channels: NCCL {channels}, stand-in {plan['channels']}")
    leaves = lambda order: sum(WORD[plan["transports"][f"{a}-{b}"]] != "p2p" for a, b in zip(order, order[1:] + order[:1]))
    if leaves(ring) != leaves(plan["ring"]):
        faults.append(f"edges of a ring that leave NVLink: NCCL {leaves(ring)} {ring}, stand-in {leaves(plan['ring'])} {plan['ring']}")
    return faults, len(vias)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sim")
    parser.add_argument("topologies")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    failed = pairs = 0
    folders = sorted(d for d in glob.glob(os.path.join(args.topologies, "*")) if glob.glob(os.path.join(d, "topo.host*.xml")))
    for folder in folders:
        name = os.path.basename(folder)
        faults, compared = compare(args.sim, folder)
        pairs += compared
        expected = KNOWN.get(name, [])
        unexpected = [f for f in faults if not any(k in f for k in expected)]
        gone = [k for k in expected if not any(k in f for f in faults)]
        failed += bool(unexpected or gone)
        for fault in unexpected:
            print(f"{name}: {fault}")
        for k in gone:
            print(f"{name}: listed as different, and is not any more: {k}")
        if args.show:
            print(f"{name}: {compared} pairs, {len(faults)} differences, {len(expected)} of them known")
    print(f"{len(folders)} machines, {pairs} pairs of ranks compared, {failed} with unlisted differences")
    return 1 if failed or len(folders) < 25 else 0


if __name__ == "__main__":
    sys.exit(main())
