"""The program on its panel, with its menu open or closed."""

import os
import subprocess
import time

import screen
from screen import mouse, point, until

OUT, SCRATCH, STATE, PROGRAM, HOME = (os.environ[name] for name in ("OUT", "SCRATCH", "STATE", "PROGRAM", "HOME_DIR"))
VARIANT, BELOW = os.environ["VARIANT"], os.environ.get("SUBMENUS") == "below"
CRASHED = [int(word) for word in os.environ["CRASHED"].split()]


class Stage:
    """The program on its panel."""

    def __init__(self, record):
        self.record, self.menus, self.program = record, screen.menus(), None
        self.icon = [int(os.environ["ICON_X"]), int(os.environ["ICON_Y"])]

    def start(self):
        registered = self.record.registered
        self.program = subprocess.Popen([PROGRAM, "--home", HOME], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(30, lambda: self.record.registered > registered)
        self.icon = until(30, self.find_still_icon) or self.icon
        until(20, lambda: self.crashed() == len(CRASHED))

    def stop(self):
        self.program.terminate()
        self.program.wait(20)

    def find_still_icon(self):
        """Panels move icons while one goes and another one comes."""
        found = self.find_icon()
        time.sleep(0.5)
        return found if found == self.find_icon() else None

    def find_icon(self):
        script = 'cd "$1"; . tests/visible/display.sh; . "tests/visible/desktops/$DESKTOP.sh"; find_icon && echo "$icon_x $icon_y"'
        found = subprocess.run(["bash", "-c", script, "_", os.getcwd()], capture_output=True, text=True, check=False)
        return [int(word) for word in found.stdout.split()] or None

    def crashed(self):
        said = subprocess.run([PROGRAM, "--home", HOME, "status", "--json"], capture_output=True, text=True, check=False)
        return said.stdout.count('"status":"crashed"')

    def close_menus(self):
        if screen.PICTURED:
            # A menu of a panel on Wayland does not have the keyboard.
            mouse("mousemove", 10, int(os.environ["HEIGHT"]) - 10, "click", 1)
        mouse("key", "Escape", "key", "Escape", "key", "Escape")
        mouse("mousemove", self.icon[0] - 300, self.icon[1] + 400)

    def measure(self):
        """Finds out how high a row is, before anything moves: GTK opens a menu that changed just now with the size that it had."""
        for _ in range(2):
            time.sleep(4)
            self.menus.row = screen.ROW
            self.open_root()
        self.close_menus()

    def open_root(self):
        self.close_menus()
        time.sleep(0.6)
        self.menus.settle()
        if screen.PICTURED:
            # Plasma puts its clipboard beside the icon once something was copied.
            self.icon = self.find_icon() or self.icon
        point(*self.icon)
        self.menus.look()
        openings = self.record.openings
        mouse("click", screen.BUTTON)
        # What the shell draws itself cannot be seen to be drawn.
        if screen.DRAWN and not (until(8, lambda: self.record.openings > openings) and not time.sleep(1)):
            return None
        return self.stands(lambda: self.record.below(), [])

    def stands(self, entries, parents):
        """Waits until the menu is drawn and does not change any more. None if it is not drawn as it was read: GTK does not
        enlarge a menu that it reads while it opens it."""
        box = until(8, lambda: self.menus.find(entries(), parents))
        for _ in range(20):
            time.sleep(0.15)
            if time.time() - self.record.heard < 0.3:
                continue  # the panel may still be reading
            again = self.menus.find(entries(), parents)
            if box and again and (again.x, again.y, again.height) == (box.x, box.y, box.height):
                return again
            box = again
        return None
