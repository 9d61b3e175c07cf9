#!/usr/bin/env python3
"""Measures the bridge of Claude Code: the real program under tmux with a scripted model, and the tray with its popups.

    claude_code.py PROGRAM CLAUDE [--rounds 30] [--idle 30]

This script is the notification server and the model. It prints medians, and the machine's load before and after:

    popup    the model's tool call, and the start of the hook's process -> `Notify`, beyond the second that popups wait for others;
             `permission-delay`, two seconds unless the user says otherwise, is off
    answer   a click on the popup, and Enter in the terminal, in turn -> the tool's first effect; what follows once the hook has
             ended is Claude Code's own
    hook     its memory while it waits; its start -> it waits (by strace, if that is installed); all of it without a tray
    idle     context switches of the tray beside an idle session, with the bridge and without it, in turn

Needs tmux, dbus-daemon, and jeepney (Debian: python3-jeepney). Linux only.
"""
import argparse, contextlib, ctypes, http.server, json, os, pathlib, re, select, shutil, socket, statistics, struct, subprocess, tempfile, threading, time, uuid
from jeepney import DBusAddress, HeaderFields, MessageType, new_method_return, new_signal, message_bus
from jeepney.io.blocking import open_dbus_connection

NOTIFICATIONS = "org.freedesktop.Notifications"
DIALOG = "Do you want to"
# A click within 0.7 s after a popup came, or within 1.2 s after another closed, answers nothing.
READ = 1.5
# How long a popup waits for others, to be one with them.
GATHER = 1
SETTLE = 45
IN_OPEN, IN_CREATE = 0x20, 0x100
KEY = "sk-made-up-0123456789abcdefghij"


def main():
    parser = argparse.ArgumentParser()
    for name in ("PROGRAM", "CLAUDE"):
        parser.add_argument(name, type=os.path.abspath)
    for name in ("rounds", "idle"):
        parser.add_argument(f"--{name}", type=int, default=30)
    args = parser.parse_args()
    print(f"load     {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        world = World(pathlib.Path(folder), args, stack)
        claude = Claude(world)
        rounds(world, claude, args.rounds)
        idle(world, args.idle)
        waiting(world, args.rounds)
        world.tray.terminate()
        world.tray.wait()
        without_a_tray(world, args.rounds)
    print(f"load     {os.getloadavg()[0]:.1f}")


class World:
    """A user with a bus, a tray, a home of Claude Code and the bridge."""

    def __init__(self, folder, args, stack):
        self.folder, self.stack = folder, stack
        # A copy that nobody else starts: what opens it is the start of a hook.
        self.program, self.claude = folder / "pilotlight", args.CLAUDE
        shutil.copy(args.PROGRAM, self.program)
        self.home, self.project, self.run_dir = folder / "home", folder / "project", folder / "run"
        for path in (self.home / ".claude/projects", self.project, self.run_dir, self.home / ".local/state/pilotlight"):
            path.mkdir(parents=True)
        self.run_dir.chmod(0o700)
        (self.home / ".local/state/pilotlight/welcomed").touch()
        user = {"hasCompletedOnboarding": True, "theme": "dark", "numStartups": 5, "hasSeenAutoDefaultNudge": True,
                "hasSeenAutoDefaultNotice": True, "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
                "projects": {str(self.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}}
        for path in (self.home, self.home / ".claude"):
            (path / ".claude.json").write_text(json.dumps(user))
        (self.home / ".claude/settings.json").write_text('{"permissions": {"defaultMode": "default"}}')
        (folder / "config.toml").write_text('[notifications]\nafter-start = "1ms"\npermission-delay = "1ms"\n')
        self.model = Model()
        self.environment = {
            "HOME": str(self.home), "PATH": f"{os.path.dirname(self.claude)}:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm-256color",
            "SHELL": "/bin/bash", "XDG_RUNTIME_DIR": str(self.run_dir), "PILOTLIGHT_CONFIG": str(folder / "config.toml"),
            "PILOTLIGHT_DISCOVER": "false", "DBUS_SESSION_BUS_ADDRESS": f"unix:path={folder}/bus",
            "ANTHROPIC_BASE_URL": self.model.address, "ANTHROPIC_API_KEY": KEY, "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        self.start(["dbus-daemon", "--session", "--nofork", f"--address=unix:path={folder}/bus"])
        wait("the bus is there", lambda: listens(folder / "bus"))
        self.popups = Popups(self.environment["DBUS_SESSION_BUS_ADDRESS"])
        self.tray = self.start([self.program, "tray"])
        wait("the tray runs", lambda: (self.run_dir / "pilotlight/pilotlight.sock").exists())
        self.bridge("install")

    def start(self, words, **more):
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([str(word) for word in words], env=self.environment, **{**quiet, **more})
        self.stack.callback(lambda: (process.kill(), process.wait()))
        return process

    def bridge(self, what):
        words = [self.program, "bridge", what, "--agent", "claude-code", "--yes"]
        ran = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran
        hooks = self.run_dir / "pilotlight/hooks.sock"
        wait(f"the tray knows of the {what}", lambda: hooks.exists() == (what == "install"))


class Model(http.server.ThreadingHTTPServer):
    """Has one command run for each prompt."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address, self.asked = f"http://127.0.0.1:{self.server_port}", {}
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number, block = None, {"type": "text", "text": "It is done."}
        if not request.get("tools"):
            block["text"] = '{"title": "Scripted title"}'
        else:
            number = prompt(request["messages"])
            if number is not None:
                block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash",
                         "input": {"command": f"touch made-{number}", "description": "paint"}}
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        usage = {"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {"id": f"msg_{len(request['messages'])}", "type": "message", "role": "assistant", "model": request["model"],
                   "stop_sequence": None, "content": [block], "stop_reason": stop, "usage": usage}
        if not request.get("stream"):
            return self.send("application/json", json.dumps(message))
        if stop == "tool_use":
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        events = [
            ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
            ("content_block_start", {"index": 0, "content_block": empty}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 10}}),
            ("message_stop", {})]
        self.send("text/event-stream", "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n" for kind, more in events))
        if number is not None:
            self.server.asked[number] = time.monotonic()

    def send(self, kind, text):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def prompt(messages):
    """The number in the last prompt. None if its tool has run."""
    for message in reversed(messages):
        text = json.dumps(message["content"])
        if "tool_result" in text:
            return None
        if message["role"] == "user" and (found := re.search(r"Paint fence (\d+)", text)):
            return int(found[1])
    return None


class Popups:
    """A notification server that shows nothing."""

    def __init__(self, bus):
        self.connection = open_dbus_connection(bus)
        self.connection.send_and_get_reply(message_bus.RequestName(NOTIFICATIONS))
        self.last, self.shown, self.sending = 0, [], threading.Lock()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        # Until the bus ends.
        with contextlib.suppress(OSError):
            while True:
                message = self.connection.receive()
                at = time.monotonic()
                if message.header.message_type == MessageType.method_call:
                    self.handle(message, at)

    def handle(self, message, at):
        member = message.header.fields[HeaderFields.member]
        answers = {"GetCapabilities": ("as", (["body", "body-markup", "actions"],)),
                   "GetServerInformation": ("ssss", ("Plasma", "pilotlight", "1", "1.2"))}
        signature, body = answers.get(member, (None, ()))
        if member == "Notify":
            self.last = message.body[1] or self.last + 1
            signature, body = "u", (self.last,)
            # The notes about what became of a click have no such button.
            if "approve" in message.body[5]:
                self.shown.append((at, self.last))
        self.send(new_method_return(message, signature, body))
        if member == "CloseNotification":
            self.emit("NotificationClosed", "uu", (message.body[0], 3))

    def emit(self, name, signature, body):
        address = DBusAddress("/org/freedesktop/Notifications", interface=NOTIFICATIONS)
        self.send(new_signal(address, name, signature, body))

    def send(self, message):
        with self.sending:
            self.connection.send(message)


class Watch:
    """When a file was opened, or made in a folder."""

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, path, mask):
        self.events, self.fd = [], self.libc.inotify_init1(os.O_CLOEXEC)
        assert self.libc.inotify_add_watch(self.fd, os.fsencode(path), mask) >= 0, os.strerror(ctypes.get_errno())
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while True:
            data = os.read(self.fd, 4096)
            at, offset = time.monotonic(), 0
            while offset < len(data):
                length = struct.unpack_from("iIII", data, offset)[3]
                name = data[offset + 16:offset + 16 + length].rstrip(b"\0").decode()
                self.events.append((at, name))
                offset += 16 + length


class Claude:
    """Claude Code in a terminal."""

    def __init__(self, world):
        self.world, self.socket = world, world.folder / "tmux"
        words = ["-f", "/dev/null", "new-session", "-d", "-P", "-F", "#{pane_pid}", "-x", "140", "-y", "45", "-c", str(world.project), "--"]
        self.pid = int(self.tmux(*words, "env", "-i", *(f"{k}={v}" for k, v in world.environment.items()), world.claude))
        world.stack.callback(lambda: self.tmux("kill-server"))
        wait("it accepts a prompt", lambda: any(line.strip().startswith("❯") for line in self.screen().splitlines()), self.screen)
        self.wait_status("idle")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", str(self.socket), *words], capture_output=True, text=True).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait_status(self, status):
        file = self.world.home / f".claude/sessions/{self.pid}.json"

        def says():
            with contextlib.suppress(OSError, ValueError):
                return json.loads(file.read_text()).get("status") == status
        wait(f"it is {status}", says, self.screen)

    def enter(self, line):
        self.tmux("set-buffer", "--", line, ";", "paste-buffer", "-d", "-p")
        wait("its input shows that", lambda: line in self.screen().rpartition("❯")[2], self.screen)
        self.tmux("send-keys", "Enter")

    def hook(self):
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                its = (path / "stat").read_text().rpartition(")")[2].split()[1] == str(self.pid)
                if its and (path / "cmdline").read_bytes().endswith(b"\0hook\0claude-code\0"):
                    return path
        return None


def listens(path):
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        return True


def wait(what, fits, dump=lambda: ""):
    until = time.monotonic() + 60
    while not (value := fits()):
        assert time.monotonic() < until, f"{what}\n{dump()}"
        time.sleep(0.01)
    return value


def first(events, since):
    return next((event for event in list(events) if event[0] >= since), None)


def report(what, name, times):
    times = sorted(time * 1e3 for time in times)
    at = lambda part: times[min(len(times) - 1, len(times) * part // 100)]
    print(f"{what:<8} {name:<28} p50 {statistics.median(times):7.2f} ms, p90 {at(90):7.2f}, worst {times[-1]:7.2f} of {len(times)}", flush=True)


def rounds(world, claude, count):
    starts, files = Watch(world.program, IN_OPEN), Watch(world.project, IN_CREATE)
    called, started, clicked, passed, keyed, memory = [], [], [], [], [], []
    for n in range(2 * count):
        claude.enter(f"Paint fence {n}")
        asked = wait("the model has its tool called", lambda: world.model.asked.get(n), claude.screen)
        at, number = wait("its popup comes", lambda: first(world.popups.shown, asked), claude.screen)
        called.append(at - asked - GATHER)
        started.append(at - first(starts.events, asked)[0] - GATHER)
        wait("its dialog is shown", lambda: DIALOG in claude.screen(), claude.screen)
        hook = claude.hook()
        memory.append(weigh(hook))
        time.sleep(READ)
        if n % 2 == 0:
            handle = os.pidfd_open(int(hook.name))
            begun = time.monotonic()
            world.popups.emit("ActionInvoked", "us", (number, "approve"))
            select.select([handle], [], [], 10)
            passed.append(time.monotonic() - begun)
            os.close(handle)
        else:
            claude.tmux("send-keys", "Enter")
            # tmux has passed it on when its command ends.
            begun = time.monotonic()
        made = lambda: next((at for at, name in list(files.events) if name == f"made-{n}"), None)
        (clicked if n % 2 == 0 else keyed).append(wait("its tool runs", made, claude.screen) - begun)
        claude.wait_status("idle")
        wait("its hook is gone", lambda: claude.hook() is None)
    report("popup", "from the tool call", called)
    report("popup", "from the start of the hook", started)
    report("answer", "click -> tool", clicked)
    report("answer", "of that, until the hook ends", passed)
    report("answer", "Enter -> tool", keyed)
    more = statistics.median(clicked) - statistics.median(keyed)
    print(f"answer   {'a click takes longer by':<28} p50 {more * 1e3:7.2f} ms")
    peak, rss, private = (statistics.median(part) for part in zip(*memory))
    print(f"hook     its peak, RSS {peak:.2f} MiB; RSS as it waits {rss:.2f}, private {private:.2f}", flush=True)


def weigh(process):
    """A process's peak, its resident memory, and of that its own, in MiB."""
    size = lambda file, key: sum(int(line.split()[1]) for line in (process / file).read_text().splitlines() if line.startswith(key)) / 1024
    return size("status", "VmHWM:"), size("smaps_rollup", "Rss:"), size("smaps_rollup", "Private_")


def request():
    return json.dumps({"session_id": str(uuid.uuid4()), "hook_event_name": "PermissionRequest", "tool_name": "Bash",
                       "tool_input": {"command": "touch made", "description": "paint"}}).encode()


# Starts a hook as Claude Code does, over sockets of its own: one that has others ends at once.
STARTS = """use Socket; socketpair my $in, my $to, AF_UNIX, SOCK_STREAM, 0; socketpair my $from, my $out, AF_UNIX, SOCK_STREAM, 0;
if (!fork) { open STDIN, "<&", $in; open STDOUT, ">&", $out; close $to; close $from; exec @ARGV }
close $in; close $out; local $/; print {$to} <STDIN>; close $to; print <$from>; wait"""


def waiting(world, count):
    """The start of a hook -> it waits for the tray. What starts it is perl by Claude Code's name."""
    if not shutil.which("strace"):
        return
    starter, trace, times = world.folder / "claude", world.folder / "trace", []
    shutil.copy(shutil.which("perl"), starter)
    for _ in range(count):
        words = ["strace", "-f", "--seccomp-bpf", "-ttt", "-e", "trace=execve,connect,poll,ppoll", "-o", trace,
                 starter, "-e", STARTS, world.program, "hook", "claude-code"]
        subprocess.run([str(word) for word in words], env=world.environment, input=request(), stdout=subprocess.DEVNULL)
        calls = [line.split(None, 2) for line in trace.read_text().splitlines()]
        calls = [(float(at), call) for _, at, call in calls]
        begun = next(at for at, call in calls if call.startswith("execve") and '"hook"' in call)
        there = next(at for at, call in calls if call.startswith("connect") and "hooks.sock" in call)
        times.append(next(at for at, call in calls if at > there and "poll" in call) - begun)
    report("hook", "its start -> it waits", times)


def without_a_tray(world, count):
    times = {"hook": [], "--version": []}
    for _ in range(count):
        for words in (["hook", "claude-code"], ["--version"]):
            begun = time.monotonic()
            # The ends of what starts it, which is this.
            (to, stdin), (said, stdout) = socket.socketpair(), socket.socketpair()
            with to, said:
                with stdin, stdout:
                    ran = subprocess.Popen([world.program, *words], env=world.environment, stdin=stdin, stdout=stdout)
                to.sendall(request())
                to.shutdown(socket.SHUT_WR)
                code = ran.wait()
                times[words[0]].append(time.monotonic() - begun)
                assert code == 0 and (words[0] != "hook" or not said.recv(1)), words
    report("hook", "without a tray, all of it", times["hook"])
    report("hook", "beside it, `--version`", times["--version"])


def switches(pid):
    """Of each thread."""
    count = lambda task: sum(int(line.split()[1]) for line in (task / "status").read_text().splitlines() if "voluntary_ctxt" in line)
    return {task.name: count(task) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


def idle(world, span):
    time.sleep(SETTLE)
    for n in range(4):
        if n:
            world.bridge("install" if n % 2 == 0 else "remove")
            time.sleep(5)
        before = switches(world.tray.pid)
        time.sleep(span)
        count = sum(now - before.get(thread, 0) for thread, now in switches(world.tray.pid).items())
        print(f"idle     {'with the bridge' if n % 2 == 0 else 'without it':<28} {count} context switches in {span} s", flush=True)
    world.bridge("install")


main()
