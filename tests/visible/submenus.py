"""Opens each submenu of a program that has just started, for the first time, and says whether it is on the screen (submenus.sh)."""

import os
import subprocess
import sys
import time

from bus import ROOT, Record
from screen import EDGE, point, shot, until
from tray import OUT, VARIANT, Stage

# What a difference between two pictures is, the least share of a row that is drawn, and by how much less than a submenu may change:
# its frame may look like what it lies on.
DIFFERENT, INK, FRAME = "3%", 0.01, 12
# How long a submenu may take to be drawn once its window is there, in seconds.
DRAWN_IN = 3
GOOD = "on the screen"
SIZE = [int(os.environ[name]) for name in ("WIDTH", "HEIGHT")]


def measure(*words):
    return subprocess.run(["convert", *map(str, words), "info:"], capture_output=True, text=True, check=True).stdout


class Opening:
    """The first opening of the submenu at this path of indexes."""

    def __init__(self, stage, path):
        self.stage, self.path, self.labels = stage, path, []
        self.name = f"{OUT}/{VARIANT}-submenu-{'-'.join(map(str, path))}"

    def run(self):
        """What came of it, and the submenu's box."""
        boxes = [self.stage.open_root()]
        if not boxes[0]:
            return "no menu", None
        boxes[0].number = ROOT
        for index in self.path:
            box = boxes[-1]
            number, box.chosen = box.entries[index]
            self.labels.append(box.chosen.label)
            shot(f"{self.name}-before.png")
            x, y = box.place(index)
            point(x, y)
            below = self.stage.stands(lambda number=number: self.stage.record.below(number), boxes)
            shot(f"{self.name}.png")
            if not below:
                places = [(place.x, place.y, place.width, place.height) for _, place in self.stage.menus.windows(boxes)]
                return f"not found among {places}", None
            below.number = number
            boxes.append(below)
            point(below.place(0)[0], y)
        until(DRAWN_IN, lambda: self.judge(boxes[-1]) == GOOD)
        return self.judge(boxes[-1]), boxes[-1]

    def judge(self, box):
        shot(f"{self.name}.png")
        if box.x < 0 or box.y < 0 or box.x + box.width > SIZE[0] or box.y + box.height > SIZE[1]:
            return f"off the screen: {box}"
        place = f"{box.width}x{box.height}+{box.x}+{box.y}"
        changed = measure(f"{self.name}-before.png", f"{self.name}.png", "-compose", "difference", "-composite", "-crop", place, "+repage",
                          "-colorspace", "gray", "-threshold", DIFFERENT, "-bordercolor", "black", "-border", 1, "-trim", "-format", "%w %h")
        width, height = map(int, changed.split())
        # One that lies on another menu may differ from it in its words alone.
        spare = (box.width / 2, box.row + 2 * EDGE) if len(self.path) > 1 else (FRAME, FRAME)
        if width < box.width - spare[0] or height < box.height - spare[1]:
            return f"drawn on {width}x{height} of {place}"
        empty = [entry.label for index, (_, entry) in enumerate(box.entries) if not entry.is_line and not self.is_drawn(box, index)]
        return f"empty rows: {empty}" if empty else GOOD

    def is_drawn(self, box, index):
        """Whether there is anything in this row."""
        y = box.place(index)[1] - int(box.row / 2) + 3
        strip = f"{box.width - 40}x{int(box.row) - 6}+{box.x + 20}+{y}"
        return float(measure(f"{self.name}.png", "-crop", strip, "+repage", "-colorspace", "gray", "-format", "%[fx:standard_deviation]")) > INK


def submenus(entries):
    return [index for index, (_, entry) in enumerate(entries) if entry.has_menu]


def main():
    record = Record(f"{OUT}/{VARIANT}-submenus-bus.log")
    stage = Stage(record)
    time.sleep(1)
    stage.start()
    stage.measure()
    paths, session = [[index] for index in submenus(record.below())], None
    bad = 0
    with open(f"{OUT}/{VARIANT}-submenus.txt", "w", buffering=1, encoding="utf-8") as book:
        while paths:
            path = paths.pop(0)
            stage.close_menus()
            stage.stop()
            stage.start()
            time.sleep(2)
            opening = Opening(stage, path)
            came, box = opening.run()
            bad += came != GOOD
            print(f"{came} · {' > '.join(opening.labels)}", file=book)
            if box and session is None:
                # The first one is a session: those in it, too.
                session = path
                paths += [[*path, index] for index in submenus(box.entries)]
    stage.close_menus()
    stage.stop()
    record.monitor.terminate()
    return bad


sys.exit(1 if main() else 0)
