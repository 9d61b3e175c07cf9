#!/usr/bin/env python3
"""Measures what other machines cost: a user with hosts, each another user of this machine behind a real sshd on loopback.

    hosts.py PROGRAM [--changes 200] [--hosts 20] [--sessions 200] [--idle 60]

Run it several times: the machine's load is printed before and after. What is measured:

    change   append there -> line of `watch --json` here, and -> line of plain `ssh host tail -f` of the same log, in turn
    order    `stop --end` of a session there, by the user there and by the one here
    memory   the tray with so many sessions on so many hosts, and its ssh children beside it
    idle     what the tray and its children wait for while nothing happens there
    flood    change, while another host floods

Needs sshd (Debian: openssh-server) and dbus-daemon. Linux only.
"""
import argparse, contextlib, datetime, fcntl, json, os, pathlib, shlex, socket, subprocess, tempfile, threading, time

GAP = 0.06  # changes that follow each other within 40 ms are handled together


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("PROGRAM", type=os.path.abspath)
    for name, default in (("changes", 200), ("hosts", 20), ("sessions", 200), ("idle", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    print(f"load     {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        world = World(pathlib.Path(folder), args.PROGRAM, stack)
        changes(world, args.changes, "change", [])
        orders(world, args.changes // 10)
        changes(world, args.changes, "flood", ["flood"])
        many(world, args)
    print(f"load     {os.getloadavg()[0]:.1f}")


class World:
    """An sshd, a client for it, and users."""

    def __init__(self, folder, program, stack):
        self.folder, self.program, self.stack = folder, program, stack
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        (folder / "known").write_text(f"[127.0.0.1]:{port} " + (folder / "host.pub").read_text())
        (folder / "sshd").write_text(
            f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
            "StrictModes no\nUsePAM no\nPidFile none\nMaxStartups 100\n")
        (folder / "client").write_text(
            f"Host *\n HostName 127.0.0.1\n Port {port}\n IdentityFile {folder}/user\n IdentitiesOnly yes\n"
            f" UserKnownHostsFile {folder}/known\n GlobalKnownHostsFile /dev/null\n")
        (folder / "bin").mkdir()
        self.script(folder / "bin/ssh", f'exec /usr/bin/ssh -F {folder}/client "$@"')
        os.makedirs("/run/sshd", exist_ok=True)
        self.run(["/usr/sbin/sshd", "-D", "-f", folder / "sshd"])
        while subprocess.run([folder / "bin/ssh", "x", "true"], stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.1)

    def script(self, path, line):
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def run(self, words, **more):
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([str(word) for word in words], **{**quiet, **more})
        self.stack.callback(lambda: (process.kill(), process.wait()))
        return process

    def user(self, name, hosts=()):
        """A user with these hosts: names of others, or the whole table of one."""
        home = self.folder / name
        (home / ".copilot/session-state").mkdir(parents=True)
        (home / ".config/pilotlight").mkdir(parents=True)
        self.script(home / "pilotlight", f'exec env -i HOME={home} PATH=/usr/bin:/bin LANG=C.UTF-8 {self.program} "$@"')
        of_name = lambda host: f'[[host]]\nname = "{host}"\nprogram = "{self.folder}/{host}/pilotlight"\n'
        tables = [host if "[[" in host else of_name(host) for host in hosts]
        (home / ".config/pilotlight/config.toml").write_text("".join(tables))
        return home

    def environment(self, home, **more):
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **more}


class Session:
    """A session with a prompt, whose process only sleeps."""

    def __init__(self, world, home, number):
        self.id, self.number = f"{number:08x}-0000-4000-a000-000000000000", 0
        folder = home / ".copilot/session-state" / self.id
        folder.mkdir()
        (folder / "workspace.yaml").write_text(f"id: {self.id}\ncwd: /home/dev/p{number}\nclient_name: github/cli\n")
        self.log = folder / "events.jsonl"
        program = home / "copilot"
        if not program.exists():
            program.write_bytes(pathlib.Path("/bin/sleep").read_bytes())
            program.chmod(0o755)
        # It holds the folder as Copilot does: the name of the file is that of its process, the lock goes with it.
        with open(folder / "hold", "w") as hold:
            fcntl.flock(hold, fcntl.LOCK_EX)
            owner = world.run([program, "100000"], pass_fds=[hold.fileno()])
        (folder / "hold").rename(folder / f"inuse.{owner.pid}.hold")
        (folder / f"inuse.{owner.pid}.lock").write_text(f"{owner.pid}\n")
        self.append("user.message", '{"content":"do it","delivery":"idle"}')

    def append(self, kind, data):
        self.number += 1
        at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        parent = "null" if self.number == 1 else f'"{self.number - 1}"'
        with open(self.log, "a") as log:
            log.write(f'{{"type":"{kind}","data":{data},"id":"{self.number}","timestamp":"{at}","parentId":{parent}}}\n')

    def flip(self, n):
        """Changes its status."""
        if n % 2 == 0:
            self.append("permission.requested", f'{{"requestId":"r{n}","permissionRequest":{{"kind":"shell","toolCallId":"c"}}}}')
        else:
            self.append("permission.completed", f'{{"requestId":"r{n - 1}","result":{{"kind":"approved"}}}}')


class Lines:
    """When the last line came that has a text."""

    def __init__(self, process):
        self.got, self.process = [], process
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.got.append((time.perf_counter(), line))

    def after(self, count, text):
        until = time.perf_counter() + 10
        while time.perf_counter() < until:
            for at, line in self.got[count:]:
                if text in line:
                    return at
            time.sleep(0.0002)
        return None


def report(what, name, times):
    times, missed = sorted(time for time in times if time is not None), sum(time is None for time in times)
    at = lambda part: times[min(len(times) - 1, len(times) * part // 100)] * 1e3
    print(f"{what:<8} {name:<8} p50 {at(50):6.2f} ms, p99 {at(99):6.2f}, worst {times[-1] * 1e3:.2f} of {len(times)}, missed {missed}", flush=True)


def changes(world, count, what, others):
    far = world.user(f"far-{what}")
    session = Session(world, far, 1)
    hosts = [far.name]
    if others:
        hello = world.folder / "hello"
        serve = subprocess.Popen([world.program, "serve", "--stdio"], env=world.environment(far), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        hello.write_bytes(serve.stdout.readline())
        serve.kill()
        serve.wait()
        account = json.dumps({"gone": "x" * 100})
        words = ["sh", "-c", f"cat {hello}; yes {shlex.quote(account)}"]
        hosts.append(f'[[host]]\nname = "flood"\ncommand = {json.dumps(words)}\n')
    near = world.user(f"near-{what}", hosts)
    watch = world.run([world.program, "watch", "--json"], env=world.environment(near), stdout=subprocess.PIPE)
    tail = world.run([world.folder / "bin/ssh", "x", f"exec tail -n0 -f {session.log}"], stdout=subprocess.PIPE)
    told, tailed = Lines(watch), Lines(tail)
    assert told.after(0, b'"working"'), "the session is seen"
    time.sleep(2)
    ours, theirs = [], []
    for n in range(count):
        before, plain = len(told.got), len(tailed.got)
        begun = time.perf_counter()
        session.flip(n)
        at, also = told.after(before, b"needs-permission" if n % 2 == 0 else b'"working"'), tailed.after(plain, b"permission")
        ours.append(at and at - begun)
        theirs.append(also and also - begun)
        time.sleep(GAP)
    report(what, "ours", ours)
    report(what, "tail -f", theirs)
    for process in (watch, tail):
        process.kill()


def orders(world, count):
    """Ends sessions: each order is given here, or by the user there."""
    far = world.user("far-order")
    sessions = [Session(world, far, number) for number in range(1, 2 * count + 1)]
    near = world.user("near-order", ["far-order"])
    nowhere = {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
    trays = [world.run([world.program, "tray"], env=world.environment(home, **nowhere)) for home in (far, near)]
    time.sleep(4)
    took = {"there": [], "here": []}
    for _ in range(count):
        for name, home in (("there", far), ("here", near)):
            begun = time.perf_counter()
            words = [world.program, "stop", "--end", "--yes", sessions.pop().id]
            ran = subprocess.run(words, env=world.environment(home), capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
            took[name].append(time.perf_counter() - begun)
    for name, times in took.items():
        report("order", name, times)
    for tray in trays:
        tray.kill()


def memory(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    kib = lambda key: next(int(line.split()[1]) for line in text.splitlines() if line.startswith(key + ":"))
    return kib("Rss") / 1024, kib("Pss") / 1024, (kib("Private_Dirty") + kib("Private_Clean")) / 1024


def children(pid):
    of_threads = [path.read_text().split() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for of_thread in of_threads for child in of_thread]


def switches(pid):
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
    return total


def many(world, args):
    names = [f"far-{n}" for n in range(args.hosts)]
    for n, name in enumerate(names):
        home = world.user(name)
        for number in range(args.sessions // args.hosts):
            session = Session(world, home, n * 1000 + number)
            session.append("assistant.message", '{"content":"Done.","toolRequests":[]}')
            session.append("assistant.turn_end", "{}")
    near = world.user("near-many", names)
    address = f"unix:path={world.folder}/bus"
    world.run(["dbus-daemon", "--session", "--nofork", f"--address={address}"])
    time.sleep(1)
    tray = world.run([world.program, "tray"], env=world.environment(near, DBUS_SESSION_BUS_ADDRESS=address))
    time.sleep(60)
    env = world.environment(near)
    rows = json.loads(subprocess.run([world.program, "status", "--json"], env=env, capture_output=True).stdout)
    ours, ssh = memory(tray.pid), [memory(pid) for pid in children(tray.pid)]
    print(f"memory   {len(rows)} sessions of {len(ssh)} hosts: tray RSS {ours[0]:.1f} MiB, PSS {ours[1]:.1f}, private {ours[2]:.1f}; "
          f"its children together RSS {sum(m[0] for m in ssh):.0f}, PSS {sum(m[1] for m in ssh):.0f}", flush=True)
    pids = [tray.pid, *children(tray.pid)]
    before = [switches(pid) for pid in pids]
    time.sleep(args.idle)
    waits = [switches(pid) - count for pid, count in zip(pids, before)]
    print(f"idle     {args.idle} s: the tray waited {waits[0]} times, its children {sum(waits[1:])}")


main()
