"""Presses entries of the menu while sessions change, and says of each press what came of it (storm.sh).

What was under the pointer is what the panel had read of the menu at the press. What was done is what the program opened,
wrote and said."""

import datetime
import json
import os
import random
import re
import subprocess
import sys
import time

from bus import ROOT, Record, layout
from screen import PICTURED, mouse, point, shot, until
from tray import BELOW, CRASHED, OUT, SCRATCH, STATE, VARIANT, Stage

# How long the pointer rests on an entry at most, how long a click may take, and how often an entry may be looked for.
REST_MAX, CLICK_MAX = 2.5, 6
AIMS = 4
# How often a menu whose sessions change for long is opened, and what a panel that reads it may take: one that has not done so
# in 4 s is given another registration.
LOOK_EVERY, READ_MAX = 300, 5
# What a click that is not carried out says.
REFUSALS = ("Nothing was done", "nothing was done", "did not work", "no longer needs", "was not")
COMMANDS, RESUMED, QUIET = f"{SCRATCH}/commands", f"{SCRATCH}/resumed", f"{STATE}/quiet.json"


def id_of(number):
    return f"36535f61-5c7b-4f09-a70b-2f8aed97{number:04d}"


def contents(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def clipboard():
    """What was copied last."""
    program = ["wl-paste", "--no-newline"] if PICTURED else ["xclip", "-selection", "clipboard", "-out"]
    return subprocess.run(program, capture_output=True, text=True, timeout=10, check=False).stdout


def crashed_in(text):
    """The crashed session that a label names."""
    found = re.search(r"crash-(\d)", text)
    return int(found[1]) if found else None


# --- The entries that are pressed: how to choose one of each kind, and what a press on it must do ---------------------


def remedy(record):
    return [[one] for one in record.below() if one[1].label.startswith("Resume crash-")]


def headline(record):
    return [[one] for one in record.below()[:1] if "need" in one[1].label]


def reopen(record):
    return [[one] for one in record.below() if one[1].label.startswith("Reopen ")]


def leave(record):
    return [[one] for one in record.below() if one[1].label == "Quit"]


def below(record, of, wanted):
    """Paths to an entry of a submenu; before the panel has read that, the last part of a path is what it will say."""
    return [[one, wanted] for one in record.below() if of(one[1])]


def notifications(record):
    wanted = random.choice(["Pause for 1 hour", "Test notification"])
    return below(record, lambda entry: entry.label.startswith("Notifications"), wanted)


def session(record):
    return below(record, lambda entry: entry.has_menu and crashed_in(entry.label), "Resume in a terminal")


def more(record):
    folds = [one for one in record.below() if re.match(r"\d+ more", one[1].label)]
    return [[one, "crash-", "Resume in a terminal"] for one in folds if "crashed" in one[1].label]


def copy(record):
    """The id of a session is copied, but of none whose id was copied last: that would change nothing."""
    sessions = [one for one in record.below() if one[1].has_menu and crashed_in(one[1].label)]
    return [[one, "More", "Copy id"] for one in sessions if id_of(crashed_in(one[1].label)) != clipboard()]


KINDS = [(remedy, 8), (headline, 2), (reopen, 2), (leave, 1), (notifications, 3), (session, 2), (more, 2), (copy, 2)]
# Submenus that open below their entries may scroll, unless they are short.
KINDS_BELOW = [(kind, weight) for kind, weight in KINDS if kind in (remedy, headline, reopen, leave, notifications)]


def wanted_of(labels):
    """What a click on the entry with this path of labels must do."""
    label = labels[-1]
    if label == "Copy id":
        return {f"copied {id_of(crashed_in(' '.join(labels)))}"}
    if label == "Resume in a terminal":
        return {f"resume {crashed_in(' '.join(labels))}"}
    if label.startswith("Resume crash-"):
        return {f"resume {crashed_in(label)}"}
    if label.startswith("Reopen "):
        return {"resumes " + label.split()[1]}
    pauses = {"Pause for 1 hour": {"paused for an hour"}, "Pause until resumed": {"paused until resumed"}}
    others = {"Quit": {"quit"}, "Test notification": {"note: Pilotlight: a test"}}
    return {**pauses, **others}.get(label, {"live"} if "need" in label else {"nothing"})


class Press:
    """One press, and what came of it."""

    def __init__(self, stage, rate, number):
        self.stage, self.record, self.name = stage, stage.record, f"{VARIANT}-storm-{rate}-{number:03d}"
        self.labels, self.came = [], "no menu"

    def choose(self):
        """A path to an entry of a random kind that is in the menu."""
        kinds = KINDS_BELOW if BELOW else KINDS
        if os.environ.get("STORM_KINDS"):
            kinds = [(kind, weight) for kind, weight in kinds if kind.__name__ in os.environ["STORM_KINDS"].split()]
        while kinds:
            kind, weight = random.choices(kinds, [weight for _, weight in kinds])[0]
            if paths := kind(self.record):
                return random.choice(paths)
            kinds = [one for one in kinds if one[0] is not kind]
        return None

    def aim(self):
        """Moves the pointer to an entry. Returns its menu and its height on the screen."""
        box = self.stage.open_root()
        path = box and self.choose()
        if not path:
            return None
        boxes, y = [box], 0
        box.number = ROOT
        for depth, step in enumerate(path):
            box = boxes[-1]
            label = step if isinstance(step, str) else step[1].label
            is_it = lambda one: one.has_menu and label in one.label if label == "crash-" else one.label == label
            index = next((n for n, (_, one) in enumerate(box.entries) if is_it(one)), None)
            if index is None:
                self.came = f"no entry {label!r}"
                return None
            x, y = box.place(index)
            point(x, y)
            number, box.chosen = box.entries[index]
            self.labels.append(box.chosen.label)
            if depth + 1 < len(path):
                if BELOW:
                    mouse("click", "1")
                    time.sleep(1)
                below = self.stage.stands(lambda: self.record.below(number), boxes)
                if not below and not BELOW:
                    point(x - 6, y)  # a menu that was being drawn does not notice a pointer that rests
                    below = self.stage.stands(lambda: self.record.below(number), boxes)
                boxes.append(below)
                if not below:
                    self.came = f"no submenu of {box.chosen.label!r}"
                    return None
                boxes[-1].number = number
                if not BELOW:
                    point(boxes[-1].place(0)[0], y)  # straight into the submenu: a way over other entries closes it
        return boxes, y

    def under_pointer(self, boxes, y):
        """The labels of what is under the pointer now."""
        found = self.stage.menus.find(self.record.below(boxes[-1].number), boxes[:-1])
        _, entry = (found or boxes[-1]).at(y)
        return self.labels[:-1] + [entry.label if entry else "nothing"]

    def run(self):
        # A session that was just resumed cannot be resumed again.
        for _ in range(AIMS):
            self.labels = []
            aimed = self.aim()
            if aimed or not self.came.startswith(("no entry", "no menu")):
                break
        if not aimed:
            shot(f"{OUT}/{self.name}.png")
            return self
        time.sleep(random.random() * REST_MAX)
        # Words of an open menu may change.
        before, self.labels = self.labels, self.under_pointer(*aimed)
        moved = before[-1] != self.labels[-1] and "need" not in before[-1]
        shot(f"{OUT}/{self.name}.png")
        done = Done(self.stage, self.labels)
        self.record.say(f"PRESSED {' > '.join(self.labels)!r} at {aimed[1]} in {aimed[0][-1]}")
        mouse("click", "1")
        self.came = done.judge(self.labels, wanted_of(self.labels))
        if moved:
            self.came += f", moved from {before[-1]!r}"
        return self


class Done:
    """What is done from now on."""

    def __init__(self, stage, labels):
        self.stage, self.record = stage, stage.record
        self.commands, self.quiet = len(contents(COMMANDS)), contents(QUIET)
        self.copied = clipboard() if labels[-1] == "Copy id" else ""
        self.notes, self.clicks = len(self.record.notes), len(self.record.clicks)

    def effects(self, labels):
        effects = set()
        for line in contents(COMMANDS)[self.commands :].splitlines():
            resumed = re.search(r"--resume=\S*?(\d{4})\b", line)
            effects.add(f"resume {int(resumed[1])}" if resumed else "live" if line.endswith(" live") else line)
        if labels[-1].startswith("Reopen ") and effects and all(one.startswith("resume ") for one in effects):
            effects = {f"resumes {len(effects)}"}
        if contents(QUIET) != self.quiet:
            effects.add("paused for an hour" if self.pause() == "hour" else f"paused until {self.pause()}")
        if labels[-1] == "Copy id" and (copied := clipboard()) != self.copied:
            effects.add(f"copied {copied}")
        if self.stage.program.poll() is not None:
            effects.add("quit" if self.stage.program.returncode == 0 else f"exit {self.stage.program.returncode}")
        return effects | {f"note: {title}" for title, _ in self.record.notes[self.notes :] if title.startswith("Pilotlight: a")}

    def pause(self):
        paused = json.loads(contents(QUIET) or "{}").get("content", {}).get("paused")
        if not isinstance(paused, dict):
            return "resumed" if paused else "nothing"
        end = datetime.datetime.fromisoformat(paused["until"].replace("Z", "+00:00")).timestamp()
        return "hour" if abs(end - time.time() - 3600) < 60 else f"{paused['until']}"

    def refusals(self, labels):
        """Why the click was not carried out, where a note says so of the session that the labels name."""
        notes = [note for note in self.record.notes[self.notes :] if any(word in " ".join(note) for word in REFUSALS)]
        is_ours = lambda title: title.startswith("Nothing was done") or title.split(":")[0] in " ".join(labels)
        return [f"{title}: {body}" for title, body in notes if is_ours(title)]

    def judge(self, labels, wanted):
        until(CLICK_MAX, lambda: wanted <= self.effects(labels) or self.refusals(labels))
        time.sleep(0.4)  # for anything else that it may do
        effects, clicked = self.effects(labels), self.record.clicks[self.clicks :]
        heard = [self.record.entry(number).label for number in clicked]
        told = "" if heard == labels[-1:] else f", the panel said {heard}"
        if effects == wanted:
            return "landed" + told
        if effects:
            return f"another: {sorted(effects)}, not {sorted(wanted)}{told}"
        refused = self.refusals(labels)
        return f"said {refused[0]!r}{told}" if refused else f"lost{told}"


def ageless(label):
    """The label without ages: a menu that is open is not told of them."""
    return re.sub(r"\d+ (s|min|h|d)\b", "", label)


def follows(stage, minutes):
    """Opens the menu, and says whether the panel has all entries of it, as they are now."""
    box, registered = stage.open_root(), stage.record.registered
    time.sleep(READ_MAX)

    def differs():
        ours = [(number, ageless(label)) for number, label in layout(stage.record.item)]
        theirs = [(number, ageless(entry.label)) for number, entry in stage.record.below()]
        # What its panel draws as a picture is a mark for others.
        differ = [pair for pair in zip(ours, theirs) if pair[0][0] != pair[1][0] or not pair[0][1].endswith(pair[1][1])]
        return differ or (len(ours) != len(theirs) and [(ours, theirs)])

    until(READ_MAX, lambda: box and not differs())
    differ = differs() if box else "no menu"
    shot(f"{OUT}/{VARIANT}-storm-after-{minutes}.png")
    new = stage.record.registered - registered
    stage.close_menus()
    return ("follows" if not differ else f"does not follow: {differ}") + (f", registered {new} times anew" if new else "")


def change_for(stage, minutes, book):
    """Lets sessions change for so long, and looks now and then."""
    begun = time.time()
    while (left := begun + 60 * minutes - time.time()) > 0:
        time.sleep(min(left, LOOK_EVERY))
        passed = round((time.time() - begun) / 60, 1)
        print(f"after {passed} minutes: the menu {follows(stage, passed)}", file=book)


def crash_again(stage):
    """Crashes resumed sessions again, once the program has seen them, and starts the program again where it was quit."""
    if contents(RESUMED):
        time.sleep(0.7)
    for process in contents(RESUMED).split():
        subprocess.run(["kill", process], stderr=subprocess.DEVNULL, check=False)
    open(RESUMED, "w", encoding="utf-8").close()
    if stage.program.poll() is not None:
        stage.start()
    until(20, lambda: stage.crashed() == len(CRASHED))


def main():
    rate, presses = sys.argv[1], int(sys.argv[2])
    record = Record(f"{OUT}/{VARIANT}-storm-{rate}-bus.log")
    stage = Stage(record)
    time.sleep(1)
    stage.start()
    stage.measure()
    open(f"{SCRATCH}/ready", "w", encoding="utf-8").close()
    with open(f"{OUT}/{VARIANT}-storm-{rate}.txt", "w", buffering=1, encoding="utf-8") as book:
        change_for(stage, float(os.environ.get("STORM_MINUTES", "0")), book)
        for number in range(1, presses + 1):
            said = len(record.lines)
            press = Press(stage, rate, number).run()
            print(f"{number}: {press.came} · {' > '.join(press.labels)}", file=book)
            if not press.came.startswith(("landed", "said")):
                with open(f"{OUT}/{press.name}.log", "w", encoding="utf-8") as log:
                    print("\n".join(record.lines[said:]), file=log)
            crash_again(stage)
    stage.close_menus()
    stage.stop()
    record.monitor.terminate()


main()
