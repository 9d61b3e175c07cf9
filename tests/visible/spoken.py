"""Prints what a screen reader receives of the open menus: each entry's name, one per line."""

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib

ENTRIES = {"menu", "menu item", "check menu item"}
DEPTH = 16


def walk(node, depth):
    if node is None or depth == 0:
        return
    try:
        name = node.get_name()
        if name and node.get_role_name() in ENTRIES:
            print(name)
        for index in range(node.get_child_count()):
            walk(node.get_child_at_index(index), depth - 1)
    except GLib.Error:
        pass  # the program is exiting, or does not answer


desktop = Atspi.get_desktop(0)
for index in range(desktop.get_child_count()):
    walk(desktop.get_child_at_index(index), DEPTH)
