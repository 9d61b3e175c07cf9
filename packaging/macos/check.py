#!/usr/bin/env python3
"""Checks that an app bundle is complete: `check.py Pilotlight.app`."""

import os
import pathlib
import plistlib
import re
import struct
import sys


def main():
    contents = pathlib.Path(sys.argv[1]) / "Contents"
    info = plistlib.loads((contents / "Info.plist").read_bytes())
    wanted = {"CFBundlePackageType": "APPL", "CFBundleIdentifier": "io.github.pilotlight.pilotlight", "LSUIElement": True}
    for key, value in wanted.items():
        assert info.get(key) == value, f"Info.plist: {key} must be {value!r}, and is {info.get(key)!r}"
    version = info["CFBundleShortVersionString"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version), f"Info.plist: {version!r} is no version"
    program = contents / "MacOS" / info["CFBundleExecutable"]
    assert os.access(program, os.X_OK), f"{program} cannot be run"
    icon = (contents / "Resources" / (info["CFBundleIconFile"] + ".icns")).read_bytes()
    assert icon[:4] == b"icns" and struct.unpack(">I", icon[4:8])[0] == len(icon), "the icon is no icns, or cut off"


main()
