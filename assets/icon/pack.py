#!/usr/bin/env python3
"""Packs pictures into the containers that Windows (.ico) and macOS (.icns) want of a program's icon.

    pack.py OUT.ico|OUT.icns FOLDER

FOLDER has one PNG a size, named by it: 16.png, 32.png, ... Both containers take PNG as it is.
"""

import pathlib
import struct
import sys

ICO = [16, 20, 24, 32, 40, 48, 64, 256]
# The name of each entry says its size: https://en.wikipedia.org/wiki/Apple_Icon_Image_format. Those of 11 to 14 are for
# screens with two pixels a point.
ICNS = [("ic11", 32), ("ic12", 64), ("ic07", 128), ("ic13", 256), ("ic08", 256), ("ic14", 512), ("ic09", 512)]


def ico(pictures):
    """A header, a list of sizes and places, the pictures."""
    head = struct.pack("<HHH", 0, 1, len(pictures))
    at = len(head) + 16 * len(pictures)
    entries, bodies = b"", b""
    for size, png in pictures:
        entries += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(png), at + len(bodies))
        bodies += png
    return head + entries + bodies


def icns(pictures):
    """A name and a length before each picture, and before all."""
    bodies = b"".join(name.encode() + struct.pack(">I", 8 + len(png)) + png for name, png in pictures)
    return b"icns" + struct.pack(">I", 8 + len(bodies)) + bodies


def main():
    out, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    read = lambda size: (folder / f"{size}.png").read_bytes()
    if out.suffix == ".ico":
        out.write_bytes(ico([(size, read(size)) for size in ICO]))
    else:
        out.write_bytes(icns([(name, read(size)) for name, size in ICNS]))


main()
