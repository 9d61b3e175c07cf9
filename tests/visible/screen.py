"""Menus on the screen: where they are, where their entries are, and a mouse."""

import os
import shutil
import subprocess
import time

from Xlib import X, display

PANEL_HEIGHT, LINE, EDGE = (int(os.environ[name]) for name in ("PANEL_HEIGHT", "LINE", "EDGE"))
BUTTON = os.environ.get("BUTTON", "1")
# Where the shell draws menus itself, without windows, they have a fixed place and size: how far the left of the first entry
# is from the right of the display, its top, its width and its height.
DRAWN = [int(word) for word in os.environ.get("DRAWN", "").split()]
POPUPS = os.environ.get("POPUPS")
# On Wayland, menus are windows that no other program can ask for: they are looked for in pictures of the display, below the
# panel or over it.
PICTURED = os.environ.get("PICTURED")
# How high a row is, where it is known: else it is measured, which needs a menu without room to spare.
ROW = int(os.environ.get("ROW") or 0) or None
# What a menu differs from the display at least, but not its shadow; half of an icon.
MENU_CONTRAST, ICON_HALF = "5%", 12
# How long a popup may stay, in seconds, and by how much an open menu may get wider.
POPUP_MAX, GROWTH_MAX = 30, 60
# How much of a submenu that may lie on another menu is looked at, in width.
STRIP = 150
ROW_HEIGHTS = range(18, 41)


def mouse(*words):
    subprocess.run(["xdotool", *map(str, words)], check=True)


def point(x, y):
    """Moves the pointer there in steps, as a hand would: menus react to motion, and GNOME's shell in a window may miss what comes
    right after a click."""
    mouse("mousemove", "--sync", x + 3, y + 1, "sleep", "0.05", "mousemove", x + 1, y, "sleep", "0.1", "mousemove", x, y)


def shot(path):
    subprocess.run(["import", "-window", "root", path], check=True)


def until(seconds, condition):
    """Waits for the condition, and returns what it returned last."""
    end = time.monotonic() + seconds
    while not (came := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return came


class Place:
    """Where a window is."""

    def __init__(self, x, y, width, height):
        self.x, self.y, self.width, self.height = x, y, width, height


class Box:
    """A menu on the screen with these entries."""

    def __init__(self, x, y, width, height, entries):
        self.x, self.y, self.width, self.height, self.entries = x, y, width, height, entries
        self.lines = sum(entry.is_line for _, entry in entries)
        self.rows = max(1, len(entries) - self.lines)
        self.row = (height - 2 * EDGE - self.lines * LINE) / self.rows

    def touches(self, place):
        """Whether the window is beside this menu. LXQt leaves room between them where the menu became narrower."""
        gap = max(self.x - place.x - place.width, place.x - self.x - self.width)
        return abs(gap) <= PANEL_HEIGHT

    def __str__(self):
        rows = ", ".join(f"{self.place(n)[1]} {entry.label[:24]!r}" for n, (_, entry) in enumerate(self.entries) if not entry.is_line)
        return f"{self.x},{self.y} {self.width}x{self.height}, {self.row:.1f} a row: {rows}"

    def place(self, index):
        """The middle of the entry with this index."""
        above = self.entries[:index]
        lines = sum(entry.is_line for _, entry in above)
        y = self.y + EDGE + (len(above) - lines) * self.row + lines * LINE + self.row / 2
        return int(self.x + self.width / 2), int(y)

    def at(self, y):
        """The entry at this height."""
        for index, (number, entry) in enumerate(self.entries):
            if not entry.is_line and abs(self.place(index)[1] - y) <= self.row / 2:
                return number, entry
        return None, None


class Windows:
    """Menus that are windows of the X server, as those of GTK and Qt are."""

    def __init__(self):
        self.display = display.Display()
        self.row = ROW

    def settle(self):
        """Waits, with the pointer away from the panel, until nothing is in the way."""

    def look(self):
        """The display as it is without menus is looked at."""

    def windows(self, _parents):
        for window in self.display.screen().root.query_tree().children:
            try:
                attributes, place = window.get_attributes(), window.get_geometry()
            except Exception:  # closed meanwhile
                continue
            if attributes.map_state != X.IsViewable or not attributes.override_redirect:
                continue
            is_popup = POPUPS and POPUPS in (window.get_wm_class() or ())
            # Cinnamon draws everything that is no window in one as large as the display.
            is_menu = 100 < place.width < self.display.screen().width_in_pixels and place.height > 2 * EDGE
            if is_menu and not is_popup:
                yield window.id, place

    def find(self, entries, parents):
        """The menu with these entries, that is none of those that it belongs to. It is fully drawn when its entries
        are as high as those of others."""
        taken = [box.window for box in parents]
        for window, place in self.windows(parents):
            if window in taken or place.y + place.height <= PANEL_HEIGHT + 2 or not entries:
                continue
            if parents and not parents[-1].touches(place):
                continue  # a popup
            box = Box(place.x, place.y, place.width, place.height, entries)
            # GTK does not enlarge a menu that got more entries: it scrolls, and its rows are not where they would be. Nor does
            # it shrink one that lost some: the rest is empty.
            if self.row and box.row > self.row:
                box.row = self.row
            # The frame of a submenu may be thinner, which matters where it has few entries.
            tolerance = 3 + 2 * EDGE / box.rows if parents else 1.2
            if (int(box.row) in ROW_HEIGHTS) if self.row is None else abs(box.row - self.row) < tolerance:
                self.row = self.row or box.row
                box.window = window
                return box
        return None


class Pictures(Windows):
    """Menus that are found by what they change on the display. Submenus open to the left of their menus, and those of submenus on
    either side. The icon, which may change, is at the right of the panel; waybar opens the menu at the pointer, over the panel.
    Plasma tints its own."""

    def __init__(self):
        super().__init__()
        # Of a submenu, before anything was opened from it.
        self.alone = f"{os.environ['SCRATCH']}/alone.ppm"
        self.bare, self.empty = (f"{os.environ['SCRATCH']}/{name}.ppm" for name in ("bare", "empty"))

    def settle(self):
        """A popup that leaves while a menu is looked for would be taken for a part of it."""
        if not os.path.exists(self.bare):
            shot(self.bare)
        until(POPUP_MAX, self.is_bare)

    def is_bare(self):
        """Whether the display looks below the panel as it did at first."""
        shot(self.empty)
        return not self.changed(self.bare, self.empty, f"{os.environ['WIDTH']}x{os.environ['HEIGHT']}+0+{PANEL_HEIGHT + 2}")

    def look(self):
        shot(self.empty)

    @staticmethod
    def changed(before, after, crop):
        """The width, height, left and top of what differs in this part of two pictures, with a border of one pixel."""
        words = ["convert", before, after, "-compose", "difference", "-composite", "-crop", crop, "+repage"]
        words += ["-colorspace", "gray", "-threshold", MENU_CONTRAST, "-bordercolor", "black", "-border", "1", "-trim", "-format", "%w %h %X %Y", "info:"]
        found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.replace("+", "").split()
        # Where nothing differs, there is nothing to trim to.
        return [int(word) for word in found] if len(found) == 4 and "-" not in "".join(found) else None

    def find(self, entries, parents):
        if len(parents) > 1:
            return self.deeper(entries, parents[-1])
        found = super().find(entries, parents)
        if found and parents:
            shutil.copyfile(self.empty.replace("empty", "now"), self.alone)
        return found

    def deeper(self, entries, parent):
        """The menu of a submenu's entry. It may lie on the first menu, which may change meanwhile and has the same colour, so it is looked
        for where it must be: beside that entry, with words that differ from the first to the last of its entries."""
        if not entries or not self.row:
            return None
        box = Box(0, 0, STRIP, 0, entries)
        box.row = self.row
        height = int(box.rows * box.row + box.lines * LINE + 2 * EDGE)
        middle = parent.place([entry for _, entry in parent.entries].index(parent.chosen))[1]
        shot(now := self.empty.replace("empty", "now"))
        # Those of Qt begin where the entry does; in those of GTK the first entry is beside it.
        for top in (middle - int(box.row / 2), middle - int(box.row / 2) - EDGE):
            top = max(0, min(top, int(os.environ["HEIGHT"]) - height))
            for left in (parent.x - STRIP, parent.x + parent.width):
                found = self.changed(self.alone, now, f"{STRIP}x{height}+{left}+{top}") if left >= 0 else None
                if found and found[0] > STRIP / 2 and found[1] > height - box.row - 2 * EDGE:
                    box.x, box.y, box.height = left, top, height
                    return box
        return None

    def windows(self, parents):
        # A menu whose words get longer grows to the left, beside its submenu.
        left = parents[-1].x - GROWTH_MAX if parents else int(os.environ["ICON_X"]) - ICON_HALF
        shot(now := self.empty.replace("empty", "now"))
        top = 0 if PICTURED == "over" else PANEL_HEIGHT + 2  # with the panel's edge
        crop = f"{left}x{int(os.environ['HEIGHT']) - top}+0+{top}"
        found = self.changed(self.empty, now, crop)
        least, hidden = (30, GROWTH_MAX) if parents else (100, 0)
        if found and found[0] > least and found[1] > 2 * EDGE:
            width, height, x, y = found
            yield len(parents), Place(x - 1, y - 1 + top, width + hidden, height)


class Drawn:
    """Menus that the shell draws itself. Submenus open below their entries."""

    row = None

    def settle(self):
        """Where they are is known."""

    look = settle

    def find(self, entries, parents):
        right, top, width, height = DRAWN
        left = int(os.environ["WIDTH"]) - right
        if parents:
            index = [entry for _, entry in parents[-1].entries].index(parents[-1].chosen)
            top = parents[-1].place(index)[1] + height // 2
        lines = sum(entry.is_line for _, entry in entries)
        rows = len(entries) - lines
        box = Box(left, top - EDGE, width, rows * height + lines * LINE + 2 * EDGE, entries)
        return box if entries and top + height <= int(os.environ["HEIGHT"]) else None


def menus():
    return Drawn() if DRAWN else Pictures() if PICTURED else Windows()
