"""Presses what other checks leave out, and says what came of it (rest.sh)."""

import glob
import os
import subprocess
import sys
import time

import screen
from bus import ROOT, Record, layout
from screen import mouse, point, shot, until
from tray import BELOW, HOME, OUT, PROGRAM, SCRATCH, VARIANT, Stage

# How long a click may take, and the demo until a session asks.
CLICK_MAX, ASKS_MAX = 8, 40
# How often an entry is looked for.
TRIES = 3
COMMANDS = f"{SCRATCH}/commands"
# What doctor says of a desktop.
DOCTOR = ("panel", "notifications", "clipboard", "autostart")


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def entries_at_login():
    """What starts the program at login."""
    folder = os.environ["XDG_CONFIG_HOME"]
    return [os.path.basename(path) for path in glob.glob(f"{folder}/autostart/*pilotlight*")]


def copied():
    program = ["wl-paste", "--no-newline"] if screen.PICTURED else ["xclip", "-selection", "clipboard", "-out"]
    return subprocess.run(program, capture_output=True, text=True, timeout=10, check=False).stdout


class Demo(Stage):
    """The demo on its panel."""

    def start(self):
        registered = self.record.registered
        self.program = subprocess.Popen([PROGRAM, "demo"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(30, lambda: self.record.registered > registered)
        self.icon = until(30, self.find_still_icon) or self.icon


def press(stage, of, wanted):
    """Presses the entry with this label in the first submenu that this is true of. Whether that could be done."""
    root = stage.open_root()
    chosen = root and next((n for n, (_, entry) in enumerate(root.entries) if entry.has_menu and of(entry)), None)
    if chosen is None:
        return False
    number, root.chosen = root.entries[chosen]
    root.number = ROOT
    x, y = root.place(chosen)
    point(x, y)
    if BELOW:
        mouse("click", 1)
        time.sleep(1)
    box = stage.stands(lambda: stage.record.below(number), [root])
    index = box and next((n for n, (_, entry) in enumerate(box.entries) if wanted in entry.label), None)
    shot(f"{OUT}/{VARIANT}-rest-{wanted.replace(' ', '-')}.png")
    if index is None:
        return False
    if not BELOW:
        point(box.place(0)[0], y)
    point(*box.place(index))
    mouse("mousedown", 1, "sleep", "0.1", "mouseup", 1)
    return True


def buttons(stage):
    """What each button does on the icon."""
    for name, button in (("left", "1"), ("right", "3")):
        stage.close_menus()
        time.sleep(1)
        stage.menus.settle()
        point(*stage.icon)
        stage.menus.look()
        opened, said = stage.record.openings, size_of(COMMANDS)
        mouse("mousedown", button, "sleep", "0.1", "mouseup", button)
        until(CLICK_MAX, lambda: stage.record.openings > opened or size_of(COMMANDS) > said)
        # Panels built on GTK do not say that they open it.
        box = not screen.DRAWN and stage.stands(lambda: stage.record.below(), [])
        shot(f"{OUT}/{VARIANT}-rest-{name}.png")
        if size_of(COMMANDS) > said:
            with open(COMMANDS, encoding="utf-8") as file:
                yield f"the {name} button: " + file.read().split("\n")[-2].split("/")[-1]
        else:
            yield f"the {name} button: " + ("the menu" if box or stage.record.openings > opened else "nothing")


def login(stage):
    """Switches the start at login on and off."""
    for state in ("on", "off"):
        before, on_clipboard = entries_at_login(), copied()
        done = press(stage, lambda entry: entry.label == "Settings", "Start at login")
        until(CLICK_MAX, lambda: entries_at_login() != before or copied() != on_clipboard)
        now = entries_at_login()
        came = f"{now}" if now != before else f"copied {copied()!r}" if copied() != on_clipboard else "nothing"
        yield f"start at login {state}: {came if done else 'not found'}"
        if now == before:
            return


def answers(stage):
    """Answers the first request of the demo, once in each way."""
    for answer in ("Approve once", "Deny"):
        stage.start()
        # Not every panel reads the menu before it opens it.
        until(ASKS_MAX, lambda: any("npm" in label for _, label in layout(stage.record.item)))
        notes = len(stage.record.notes)
        # A menu that grew while it was opened does not have all entries.
        done = any(press(stage, lambda entry: "npm" in entry.label, answer) for _ in range(TRIES))
        until(CLICK_MAX, lambda: stage.record.notes[notes:])
        came = [f"{title} | {body}" for title, body in stage.record.notes[notes:]] or "nothing was said"
        yield f"{answer}: {came if done else 'not found'}"
        stage.close_menus()
        stage.stop()


def doctor():
    said = subprocess.run([PROGRAM, "--home", HOME, "doctor"], capture_output=True, text=True, check=False).stdout
    for line in said.splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and words[1] in DOCTOR:
            yield f"doctor: {words[0]} {words[1]}: {words[2]}"


def main():
    record = Record(f"{OUT}/{VARIANT}-rest-bus.log")
    stage = Stage(record)
    time.sleep(1)
    bad = 0
    with open(f"{OUT}/{VARIANT}-rest.txt", "w", buffering=1, encoding="utf-8") as book:
        stage.start()
        if not screen.DRAWN:
            stage.measure()
        for line in [*buttons(stage), *login(stage), *doctor()]:
            print(line, file=book)
            bad += line.endswith(("nothing", "not found"))
        stage.close_menus()
        stage.stop()
        demo = Demo(record)
        demo.menus.row = stage.menus.row
        for line in answers(demo):
            print(line, file=book)
            bad += line.endswith(("not found", "nothing was said"))
    record.monitor.terminate()
    return 1 if bad else 0


sys.exit(main())
