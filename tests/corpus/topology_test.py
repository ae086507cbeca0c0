#!/usr/bin/env python3
"""Every planned topology: the verdict of `ringscope diagnose`, and the GPUs, edges, links, lanes, hosts and paths that expected.json
names, whole and with parts of the evidence taken away.
usage: topology_test.py RINGSCOPE DIR [NAME...]"""
import glob, gzip, json, os, re, subprocess, sys, tempfile

exe, base = os.path.abspath(sys.argv[1]), sys.argv[2]
KINDS = {
    'healthy': {'none'}, 'healthy_without_baseline': {'none'}, 'degraded_lanes': {'degraded_plan'}, 'fallback_path': {'fallback_path'},
    'init_failure': {'error_reported', 'misconfigured'}, 'gdr_off': {'fallback_path'}}
failures = []
runs = 0


def diagnose(files):
    global runs
    runs += 1
    out = subprocess.run([exe, 'diagnose', '--format=json', *files], capture_output=True, text=True, timeout=60).stdout
    found = json.loads(out)
    return found.get('findings') or [{'kind': 'none'}]


def pairs(finding):
    return {tuple(sorted((e.get('from', 0), e.get('to', 0)))) for e in (finding.get('who') or {}).get('edges', [])}


def check(what, ok, finding):
    if not ok:
        failures.append(f'{what}: {finding.get("kind")} {finding.get("title", "")[:200]} {json.dumps(finding.get("who", {}))[:300]}')


def check_whole(name, want, finding, rings):
    who = finding.get('who') or {}
    text = json.dumps(finding).lower()
    gpus = who.get('gpus', [])
    check(f'{name}: kind', finding['kind'] in KINDS[want['verdict']], finding)
    check(f'{name}: evidence', finding['kind'] == 'none' or finding.get('evidence'), finding)
    if want['verdict'].startswith('healthy'):
        return
    gpu = want.get('gpu')
    if isinstance(gpu, int) and want['verdict'] != 'init_failure':
        check(f'{name}: gpu {gpu}', [g for g in gpus if g.startswith(f'GPU {gpu} (0000:')] and len(gpus) == 1, finding)
        rank = want.get('rank', gpu)
        check(f'{name}: rank {rank}', who.get('ranks') == [rank], finding)
    if gpu == 'all':
        check(f'{name}: all gpus', len(gpus) == 8, finding)
    edges = want.get('edges')
    if isinstance(edges, list):
        check(f'{name}: edges', pairs(finding) == {tuple(sorted(map(int, e.split('-')))) for e in edges}, finding)
    elif edges == 'all':
        check(f'{name}: all ring edges', pairs(finding) >= rings, finding)
    elif edges == 'all cross-socket':
        check(f'{name}: cross', pairs(finding) and all(a < 4 <= b for a, b in pairs(finding)), finding)
    if 'link' in want:
        a, b = want['link'].split('-')
        check(f'{name}: link', any(f'GPU {a} (' in l and f'GPU {b} (' in l for l in who.get('links', [])), finding)
        check(f'{name}: the link\'s edge', pairs(finding) == {(int(a), int(b))}, finding)
    if 'expected_lanes' in want:
        check(f'{name}: lanes', f'{want["lanes"]} of {want["expected_lanes"]}' in text, finding)
    elif 'lanes' in want:
        check(f'{name}: lanes', re.search(rf'\b{want["lanes"]} of \d+', text), finding)
    if 'path' in want:
        for word in re.findall(r'SHM|NET|PCIe P2P', want['path']):
            check(f'{name}: path {word}', word.lower() in text, finding)
        check(f'{name}: expected path', want['expected_path'].lower() in text, finding)
    for variable in re.findall(r'NCCL_\w+(?:=1)?', want.get('cause', '')):
        check(f'{name}: {variable}', variable.lower() in text, finding)
    if 'P2P refused' in want.get('cause', ''):
        check(f'{name}: quotes', 'p2p is disabled between nvlink' in text and 'nccl_ignore_disabled_p2p' in text, finding)
    if 'host' in want:
        check(f'{name}: host', who.get('hosts') == ['host' + want['host']], finding)


def ring_pairs(logs):
    found = set()
    for text in logs.values():
        for line in re.findall(r'Channel \d+/\d+ : +([\d ]+)$', text, re.M):
            ranks = [int(r) for r in line.split()]
            found |= {tuple(sorted((a, b))) for a, b in zip(ranks, ranks[1:] + ranks[:1])}
    return found


def interleave(texts):
    lines = [t.splitlines(keepends=True) for t in texts]
    return ''.join(l for step in range(max(map(len, lines))) for l in [part[step] for part in lines if step < len(part)])


def without_graph(text):
    graph = r'===|\+ (PCI|NVL|NET|LOC|SYS)\[|(CPU|GPU|NET|NVS)/[0-9a-f]|Pattern \d| +\d+ : (GPU|NET)/|Ring \d\d :|Tree \d+ :|ncclTopo'
    return '\n'.join(l for l in text.splitlines() if not re.search(r'NCCL INFO +(?:' + graph + ')', l)) + '\n'


def main():
    names = sys.argv[3:] or sorted(n for n in os.listdir(base) if os.path.exists(os.path.join(base, n, 'expected.json')))
    for name in names:
        folder = os.path.join(base, name)
        want = json.load(open(os.path.join(folder, 'expected.json')))
        packed = sorted(glob.glob(os.path.join(folder, '*.log.gz')))
        dumps = sorted(glob.glob(os.path.join(folder, '*-dump.*.xml')))
        logs = {p: gzip.open(p, 'rt').read() for p in packed}
        check_whole(name, want, diagnose(packed + dumps)[0], ring_pairs(logs))
        healthy = want['verdict'].startswith('healthy')
        kinds = KINDS[want['verdict']]
        with tempfile.TemporaryDirectory() as scratch:
            def put(file, text):
                path = os.path.join(scratch, file)
                open(path, 'w').write(text)
                return path
            # One file with everything: the names that told hosts and ranks apart are gone.
            mixed = put('all.log', interleave(list(logs.values())))
            first = diagnose([mixed])[0]
            check(f'{name}: interleaved', first['kind'] in kinds, first)
            if isinstance(want.get('edges'), list):
                check(f'{name}: interleaved edges', pairs(first) == {tuple(sorted(map(int, e.split('-')))) for e in want['edges']}, first)
            # One rank's log alone.
            one = diagnose([packed[-1]])[0]
            check(f'{name}: one log', one['kind'] in (kinds | ({'none', 'degraded_plan'} if not healthy and want['verdict'] != 'init_failure' else
                                                      {'init_incomplete', 'undetermined', 'error_reported', 'fallback_path'} if not healthy else set())), one)
            # INIT lines alone, no files: less can be said, and nobody healthy is accused.
            bare = diagnose([put('init.log', without_graph(interleave(list(logs.values()))))])[0]
            check(f'{name}: init lines', bare['kind'] in (kinds if healthy or want['verdict'] == 'init_failure' else kinds | {'none'}), bare)
            if isinstance(want.get('gpu'), int) and bare['kind'] not in ('none', 'misconfigured', 'error_reported'):
                check(f'{name}: init lines name the rank', (bare.get('who') or {}).get('ranks') == [want.get('rank', want['gpu'])], bare)
            if dumps and not want['verdict'] in ('init_failure', 'gdr_off') and len(packed) != 2:
                alone = diagnose(dumps)[0]
                check(f'{name}: dumps alone', alone['kind'] in (kinds | {'none', 'degraded_plan'}) if not healthy else alone['kind'] == 'none', alone)
    for failure in failures:
        print(failure)
    print(f'{len(names)} topologies, {runs} diagnoses, {len(failures)} failures')
    sys.exit(1 if failures or not names else 0)


main()
