#!/usr/bin/env python3
"""Measures what other agents cost beside Copilot: the same program in two homes of a user, in turn.

    beside.py PROGRAM ALONE WITH [--runs 25] [--changes 200] [--idle 120]

ALONE and WITH are folders that stand for the user's home: one has .copilot alone, the other the same .copilot (a link will
do) and what other_agents.py makes. Prints medians:

    first    start -> first line of `watch --json`: time and CPU, and the ratio by pairs
    append   append -> line of `watch --json` in WITH, one live session of each agent
    idle     CPU, context switches, threads, watches and memory of `watch` in both at once, from 45 s after their start
    report   `pilotlight report`, and `--version` as the least that a process costs

The live sessions are made in WITH, and removed again. 0.25 ms or more of each `append` are this reader's own. Linux only.
"""
import argparse, contextlib, json, os, pathlib, resource, shutil, statistics, subprocess, tempfile, threading, time, uuid

SETTLE = 45
GAP = 0.06  # changes that follow each other within 40 ms are handled together


def environment(home, run):
    return {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": run, "TERM": "dumb"}


def start(args, home, run, **streams):
    return subprocess.Popen(args, env=environment(home, run), stderr=subprocess.DEVNULL, **streams)


def end(process):
    """Ends it, and returns its CPU time in ms."""
    process.kill()
    used = os.wait4(process.pid, 0)[2]
    process.returncode = 0
    return (used.ru_utime + used.ru_stime) * 1e3


def first(args, run):
    got = {args.ALONE: [], args.WITH: []}
    for n in range(args.runs + 1):
        for home, runs in got.items():
            begun = time.perf_counter()
            watch = start([args.PROGRAM, "watch", "--json"], home, run, stdout=subprocess.PIPE)
            watch.stdout.readline()
            took = (time.perf_counter() - begun) * 1e3
            cpu = end(watch)
            watch.stdout.close()
            if n > 0:  # the first one warms the caches
                runs.append((took, cpu))
    for name, runs in zip(("alone", "with"), got.values()):
        print(f"first    {name:<6} {median(t for t, _ in runs):8.1f} ms, CPU {median(c for _, c in runs):.1f} ms")
    pairs = list(zip(got[args.WITH], got[args.ALONE]))
    print(f"first    ratio  {median(a[0] / b[0] for a, b in pairs):8.2f}, CPU {median(a[1] / b[1] for a, b in pairs):.2f}")


def median(values):
    return statistics.median(list(values))


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at := time.time())) + f".{int(at % 1 * 1000):03}Z"


def line(**fields):
    return (json.dumps(fields, separators=(",", ":")) + "\n").encode()


class Live:
    """One live session: its id, its log, and the lines that change its row, in turn."""

    def __init__(self, id, log, steps):
        self.id, self.log, self.steps = id, log, steps

    def write(self, n):
        with open(self.log, "ab") as log:
            begun = time.perf_counter()
            log.write(self.steps[n % 2](n))
        return begun


@contextlib.contextmanager
def copilot(home):
    """Its owner is a copy of sleep of its name."""
    id, lab = str(uuid.uuid4()), tempfile.mkdtemp()
    folder = home / ".copilot/session-state" / id
    folder.mkdir()
    event = lambda kind, n, **data: line(type=kind, data=data, id=str(n), timestamp=now(), parentId=None)
    owner = subprocess.Popen([shutil.copy(shutil.which("sleep"), lab + "/copilot"), "3600"], cwd=folder)
    (folder / f"inuse.{owner.pid}.lock").write_text(f"{owner.pid}\n")
    rest = lambda n: event("assistant.message", n, content="Done.", toolRequests=[]) + event("assistant.turn_end", n)
    try:
        yield Live(id, folder / "events.jsonl", (lambda n: event("user.message", n, content="go on"), rest))
    finally:
        end(owner)
        shutil.rmtree(folder)
        shutil.rmtree(lab)


@contextlib.contextmanager
def claude_code(home):
    """This process is its owner. An older release says nothing of its status, so its log decides: a prompt, or a call."""
    id, folder = str(uuid.uuid4()), home / ".claude/projects/-srv-beside"
    folder.mkdir(parents=True, exist_ok=True)
    started = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    pid = home / f".claude/sessions/{os.getpid()}.json"
    pid.parent.mkdir(exist_ok=True)
    said = {"pid": os.getpid(), "sessionId": id, "cwd": "/srv/beside", "procStart": started, "kind": "interactive"}
    pid.write_text(json.dumps(said | {"startedAt": int(time.time() * 1000), "version": "2.1.197", "entrypoint": "cli"}))
    turn = lambda kind, n, **message: line(
        type=kind, sessionId=id, uuid=str(uuid.uuid4()), timestamp=now(), cwd="/srv/beside", isSidechain=False, message=message)
    work = lambda n: turn("user", n, role="user", content="go on")
    tool = lambda n: [{"type": "tool_use", "id": f"toolu_{n}", "name": "Bash", "input": {"command": "make"}}]
    call = lambda n: turn("assistant", n, id=f"m{n}", role="assistant", stop_reason="tool_use", content=tool(n))
    try:
        yield Live(id, folder / f"{id}.jsonl", (work, call))
    finally:
        pid.unlink()
        shutil.rmtree(folder)


@contextlib.contextmanager
def codex(home):
    """A copy of flock of its name holds its lock: of another program, it would not be opened."""
    millis = f"{int(time.time() * 1000):012x}"
    id, lab = f"{millis[:8]}-{millis[8:]}-7000-a000-{uuid.uuid4().hex[:12]}", tempfile.mkdtemp()
    log = home / time.strftime(".codex/sessions/%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S-") / ""
    log = log.with_name(log.name + id + ".jsonl")
    log.parent.mkdir(parents=True, exist_ok=True)
    meta = {"id": id, "session_id": id, "timestamp": now(), "cwd": "/srv/beside", "originator": "codex-tui", "cli_version": "0.169.0"}
    path = home / f".codex/thread-writer-locks/{id}.lock"
    event = lambda kind, n: line(timestamp=now(), type="event_msg", payload={"type": kind, "turn_id": f"t{n // 2}"})
    program = shutil.copy(shutil.which("flock"), lab + "/codex")
    owner = subprocess.Popen([program, "--close", path, "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        log.write_bytes(line(timestamp=now(), type="session_meta", payload=meta))
        yield Live(id, log, (lambda n: event("task_started", n), lambda n: event("task_complete", n)))
    finally:
        owner.stdin.close()
        owner.wait()
        path.unlink()
        log.unlink()
        shutil.rmtree(lab)


def append(args, run):
    home = pathlib.Path(args.WITH)
    with copilot(home) as one, claude_code(home) as other, codex(home) as third:
        live = {"Copilot": one, "Claude Code": other, "Codex": third}
        for session in live.values():
            session.write(0), session.write(1)
        watch = start([args.PROGRAM, "watch", "--json"], home, run, stdout=subprocess.PIPE)
        seen, arrived = {}, threading.Condition()

        def read():
            for text in watch.stdout:
                at = time.perf_counter()
                row = json.loads(text)
                with arrived:
                    seen.setdefault(row.get("id"), at)
                    arrived.notify()

        threading.Thread(target=read, daemon=True).start()
        time.sleep(5)
        took = {name: [] for name in live}
        for n in range(2, args.changes + 2):
            for name, session in live.items():
                time.sleep(GAP)
                with arrived:
                    seen.clear()
                begun = session.write(n)
                with arrived:
                    if arrived.wait_for(lambda: session.id in seen, 0.5):
                        took[name].append((seen[session.id] - begun) * 1e3)
        end(watch)
        for name, times in took.items():
            times.sort()
            at = lambda share: times[int((len(times) - 1) * share)] if times else float("nan")
            print(f"append   {name:<12} p50 {at(0.5):.2f} ms, p99 {at(0.99):.2f}, {len(times)} of {args.changes} seen")


def sample(pid):
    switches = cpu = threads = watches = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = dict(l.split(":", 1) for l in (thread / "status").read_text().splitlines() if ":" in l)
        switches += int(status["voluntary_ctxt_switches"])
        cpu += int((thread / "schedstat").read_text().split()[0])
        threads += 1
    for open_file in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            watches += open_file.read_text().count("inotify wd:")
    return switches, cpu / 1e6, threads, watches, int(status["VmRSS"].split()[0]) / 1024


def idle(args, run):
    homes = {"alone": args.ALONE, "with": args.WITH}
    watches = {name: start([args.PROGRAM, "watch", "--json"], home, run, stdout=subprocess.DEVNULL) for name, home in homes.items()}
    time.sleep(SETTLE)
    before = {name: sample(watch.pid) for name, watch in watches.items()}
    time.sleep(args.idle)
    for name, watch in watches.items():
        (was, used, *_), (switches, cpu, threads, count, memory) = before[name], sample(watch.pid)
        print(f"idle     {name:<6} CPU {cpu - used:.1f} ms and {switches - was} waits in {args.idle} s (start: {used:.0f} ms), "
              f"{threads} threads, {count} watches, {memory:.1f} MiB")
        end(watch)


def report(args, run):
    told = ["report", "--agent", "aider", "--session", "beside", "--state", "working"]
    got = {"--version": [], "report": []}
    for _ in range(200):
        for name, words in (("--version", ["--version"]), ("report", told)):
            before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            with tempfile.TemporaryFile() as nothing:
                start([args.PROGRAM, *words], args.ALONE, run, stdout=nothing).wait()
            took, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            got[name].append((took * 1e3, cpu * 1e3))
    for name, runs in got.items():
        print(f"report   {name:<9} {median(t for t, _ in runs):.1f} ms, CPU {median(c for _, c in runs):.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("PROGRAM", "ALONE", "WITH"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--idle", type=int, default=120)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as run:
        for measure in (first, append, report, idle):
            measure(args, run)


main()
