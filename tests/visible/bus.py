"""What a panel and the program say to each other about the menu, as it was said: a record of the session bus.

The record also knows the menu as the panel read it: which entries it has, and what each of them says."""

import json
import subprocess
import threading
import time

MENU = "com.canonical.dbusmenu"
NOTES = "org.freedesktop.Notifications"
ITEM = "org.kde.StatusNotifierItem"
WATCHER = "org.kde.StatusNotifierWatcher"
ROOT = 0
# A name of a property that no entry has: who asks for it is this script, and no panel.
OURS = "ours"
# Marks of direction around names, and the mnemonic marker.
INVISIBLE = str.maketrans("", "", "\u2066\u2067\u2068\u2069\u200e\u200f")


def value(variant):
    """The data of a variant."""
    return variant["data"] if isinstance(variant, dict) and "data" in variant else variant


def plain(label):
    """A label as it is read."""
    return label.replace("__", "_").translate(INVISIBLE).strip()


def layout(item):
    """The menu of the program with this name on the bus, as it is: the number and the label of each entry. It asks for all
    levels: who reads one at a time is taken for Plasma, to whom more is sent."""
    call = ["busctl", "--user", "--json=short", "--", "call", item, "/MenuBar", MENU, "GetLayout", "iias", "0", "-1", "3", "label", "visible", OURS]
    reply = json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
    entries = [value(one) for one in reply["data"][1][2]]
    shown = [(number, properties) for number, properties, _ in entries if value(properties.get("visible", True))]
    return [(number, plain(value(properties.get("label", "")))) for number, properties in shown]


class Entry:
    """An entry of the menu, as the panel was told of it."""

    def __init__(self):
        self.label, self.spoken, self.is_line, self.has_menu, self.entries = "", "", False, False, []
        self.is_hidden = False

    def set(self, properties):
        for name, variant in properties.items():
            if name == "label":
                self.label = plain(value(variant))
            elif name == "accessible-desc":
                self.spoken = value(variant).translate(INVISIBLE).strip()
            elif name == "type":
                self.is_line = value(variant) == "separator"
            elif name == "children-display":
                self.has_menu = value(variant) == "submenu"
            elif name == "visible":
                self.is_hidden = not value(variant)


class Record:
    """Follows the bus from now on."""

    def __init__(self, path):
        self.file = open(path, "w", buffering=1, encoding="utf-8")
        self.entries = {ROOT: Entry()}
        # `heard` is when the menu was last read.
        self.started, self.calls, self.heard = time.time(), {}, 0.0
        self.clicks, self.notes, self.lines, self.registered, self.openings = [], [], [], 0, 0
        self.item = ""  # the program's name
        command = ["busctl", "--user", "monitor", "--json=short"]
        command += [f"--match=interface='{name}'" for name in (MENU, NOTES, WATCHER)]
        # Replies have no interface.
        command += ["--match=type='method_return'"]
        self.monitor = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.monitor.stdout:
            try:
                self.hear(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                self.say(f"not understood: {error!r}")

    def say(self, text, at=None):
        line = f"{(at or time.time()) - self.started:9.3f}  {text}"
        self.lines.append(line)
        print(line, file=self.file)

    def hear(self, message):
        kind, member = message["type"], message.get("member", "")
        at, sender = message.get("timestamp-realtime", 0) / 1e6 or None, message.get("sender", "")
        data = message.get("payload", {}).get("data", [])
        if kind == "method_return":
            call = self.calls.pop((message.get("destination"), message.get("reply_cookie")), None)
            if call:
                self.answered(*call, data, at)
            return
        if message.get("interface") == NOTES:
            if member == "Notify":
                self.notes.append((data[3], data[4]))
                self.say(f"{sender} notifies: {data[3]} | {data[4]} | {data[5]}", at)
            return
        if message.get("interface") == WATCHER:
            if member == "RegisterStatusNotifierItem":
                self.registered, self.item = self.registered + 1, sender
                self.entries = {ROOT: Entry()}  # numbers begin anew, and mean something else
            self.say(f"{sender} {member} {data}", at)
            return
        if member == "GetLayout" and OURS in data[2]:
            return
        self.heard = time.time() if member in ("GetLayout", "LayoutUpdated") else self.heard
        if kind == "method_call":
            self.calls[(sender, message["cookie"])] = (sender, member, data)
        self.say(f"{sender} {kind == 'signal' and 'signals ' or ''}{member} {self.worded(member, data)}", at)
        self.openings += member == "Event" and data[:2] == [ROOT, "opened"]
        if member == "Event" and data[1] == "clicked":
            self.clicks.append(data[0])
        elif member == "EventGroup":
            self.clicks += [event[0] for event in data[0] if event[1] == "clicked"]
        elif member == "ItemsPropertiesUpdated":
            for number, properties in data[0]:
                self.entry(number).set(properties)
            for number, names in data[1]:
                self.entry(number).is_hidden &= "visible" not in names

    def worded(self, member, data):
        if member in ("Event", "AboutToShow"):
            return f"{data[:2]} {self.entry(data[0]).label!r}"
        if member == "EventGroup":
            return " ".join(f"{event[:2]} {self.entry(event[0]).label!r}" for event in data[0])
        if member == "ItemsPropertiesUpdated":
            return f"of {len(data[0])}"
        return str(data)[:80]

    def answered(self, sender, member, data, asked, at):
        """A reply to a call that was asked so."""
        self.heard = time.time() if member in ("GetLayout", "GetGroupProperties") else self.heard
        if member == "GetLayout":
            (revision, root), depth = asked, data[1]
            self.read(root, depth if depth >= 0 else 99)
            self.say(f"{sender} read {data[0]}, revision {revision}", at)
        elif member == "GetGroupProperties":
            for number, properties in asked[0]:
                self.entry(number).set(properties)
        elif member == "AboutToShow":
            self.say(f"{sender} is told that {data[0]} needs an update: {asked[0]}", at)

    def read(self, node, depth):
        number, properties, below = value(node)
        entry = self.entry(number)
        entry.set(properties)
        if depth > 0:
            entry.entries = [self.read(one, depth - 1) for one in below]
        return number

    def entry(self, number):
        return self.entries.setdefault(number, Entry())

    def below(self, number=ROOT):
        """The entries of this menu, from the top down, each with its number."""
        below = [(one, self.entry(one)) for one in self.entry(number).entries]
        return [(one, entry) for one, entry in below if not entry.is_hidden]
