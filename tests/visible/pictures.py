"""Takes pictures of the menu and of its submenus (pictures.sh)."""

import re
import subprocess
import sys
import time

import screen
from bus import ROOT, Record
from screen import mouse, point, shot, until
from tray import BELOW, OUT, PROGRAM, VARIANT, Stage

# How long a submenu may take to be drawn. How many sessions are opened, and what of the rest.
DRAWN_IN = 1.5
SESSIONS = {"demo": 7, "sessions": 2}
# The marks before a session's name, where a panel draws no pictures, and how much of a name is enough to know it by.
MARKS, NAME_MAX = "⚑⊘◷╳✗◌▶▷✓○•?■× ", 20
OTHERS = ("more", "idle", "Notifications", "Settings", "Answer terminal")


def name_of(entry):
    """The entry by what does not change: the name of a session, which may be cut later, or the word after a number."""
    counted = re.match(r"\d+ (\w+)", entry.label)
    return counted[1] if counted else entry.label.split(" — ")[0].lstrip(MARKS)[:NAME_MAX].split("…")[0]


class Demo(Stage):
    """The demo on its panel."""

    def start(self):
        registered = self.record.registered
        self.program = subprocess.Popen([PROGRAM, "demo"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(30, lambda: self.record.registered > registered)
        # Every status is on show 55 s in.
        time.sleep(58)
        self.icon = until(30, self.find_still_icon) or self.icon


class Album:
    """The pictures of one program's menu."""

    def __init__(self, stage, name):
        self.stage, self.record, self.name, self.taken = stage, stage.record, name, 0

    def take(self, what):
        self.taken += 1
        shot(f"{OUT}/{VARIANT}-pictures-{self.name}-{self.taken:02d}-{what}.png")

    def open(self, name):
        """Opens the menu, and the submenu of the entry with this name. Returns the menu, and the entry's number and height."""
        root = self.stage.open_root()
        index = root and next((n for n, (_, entry) in enumerate(root.entries) if name_of(entry) == name), None)
        if index is None:
            return None, None, None
        root.number, root.chosen = ROOT, root.entries[index][1]
        x, y = root.place(index)
        point(x, y)
        if BELOW:
            mouse("click", 1)
        time.sleep(DRAWN_IN)
        return root, root.entries[index][0], y

    def all(self):
        root = self.stage.open_root()
        if not root:
            print(f"{self.name}: no menu")
            return False
        time.sleep(DRAWN_IN)
        self.take("menu")
        wanted = [entry for _, entry in root.entries if entry.has_menu]
        sessions = [name_of(entry) for entry in wanted if " — " in entry.label][: SESSIONS[self.name]]
        others = [name_of(entry) for entry in wanted if any(word in entry.label for word in OTHERS)]
        for name in sessions + others:
            root, number, y = self.open(name)
            what = "".join(letter if letter.isalnum() else "-" for letter in name)[:24].strip("-")
            self.take(what if root else f"{what}-none")
            if root and name in sessions and not BELOW:
                self.deeper(root, number, y, what)
        self.stage.close_menus()
        return True

    def deeper(self, root, number, y, what):
        """What opens from a submenu."""
        box = self.stage.stands(lambda: self.record.below(number), [root])
        if not box:
            return
        point(box.place(0)[0], y)
        for index, (_, entry) in enumerate(box.entries):
            if entry.has_menu:
                point(*box.place(index))
                time.sleep(DRAWN_IN)
                self.take(f"{what}-{entry.label.split()[0]}")


def main():
    name = sys.argv[1]
    record = Record(f"{OUT}/{VARIANT}-pictures-{name}-bus.log")
    stage = (Demo if name == "demo" else Stage)(record)
    time.sleep(1)
    stage.start()
    stage.menus.row = screen.ROW
    if not (screen.DRAWN or screen.ROW):
        stage.measure()
    done = Album(stage, name).all()
    stage.stop()
    record.monitor.terminate()
    return 0 if done else 1


sys.exit(main())
