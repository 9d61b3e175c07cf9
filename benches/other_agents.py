#!/usr/bin/env python3
"""Makes homes of other agents, for measuring what they cost beside Copilot's.

    other_agents.py FOLDER [--claude LOG] [--codex LOG] [--sessions 1000] [--today 100]

makes FOLDER/.claude and FOLDER/.codex, each with so many ended sessions: copies of one recorded log of that agent with an
id of their own, last written at times spread over 90 days. So many of them are of the last day. The name of a log has the
id of its session.
"""
import argparse, os, pathlib, re, time, uuid

UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
DAY = 86400


def place(path, log, written):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(log)
    os.utime(path, (written, written))


def codex_id(written, n):
    """An id as Codex makes them: a UUID of version 7, which begins with the time."""
    high, low = divmod(int(written * 1000), 1 << 16)
    return f"{high:08x}-{low:04x}-7000-a000-{n:012x}"


def copies(recording, args, id_of):
    """The id, text and time of each session."""
    log = pathlib.Path(recording).read_bytes()
    own = UUID.search(os.path.basename(recording).encode()).group()
    for n in range(args.sessions):
        ago = n * DAY / args.today if n < args.today else DAY + n * 89 * DAY / args.sessions
        written = time.time() - ago
        new = id_of(written, n)
        yield new, log.replace(own, new.encode()), written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--claude")
    parser.add_argument("--codex")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--today", type=int, default=100)
    args = parser.parse_args()
    if args.claude:
        (args.folder / ".claude/sessions").mkdir(parents=True, exist_ok=True)
        id_of = lambda _, n: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{args.claude} {n}"))
        for n, (new, log, written) in enumerate(copies(args.claude, args, id_of)):
            place(args.folder / f".claude/projects/-srv-project-{n % 40}/{new}.jsonl", log, written)
    if args.codex:
        (args.folder / ".codex/thread-writer-locks").mkdir(parents=True, exist_ok=True)
        for new, log, written in copies(args.codex, args, codex_id):
            day = time.strftime("%Y/%m/%d", time.localtime(written))
            name = time.strftime("rollout-%Y-%m-%dT%H-%M-%S", time.localtime(written))
            place(args.folder / f".codex/sessions/{day}/{name}-{new}.jsonl", log, written)


main()
