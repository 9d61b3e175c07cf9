#!/usr/bin/env python3
"""Packs the programs for Windows, with their documents, for `cargo binstall` and for those who install nothing.

    python packaging/windows/pack.py FOLDER

FOLDER contains pilotlight.exe and pilotlightw.exe. Prints the path: target/archive/pilotlight-VERSION-TARGET.zip. Runs on
any system; the same files make the same archive.
"""

import pathlib
import sys
import tomllib
import zipfile

TARGET = "x86_64-pc-windows-msvc"
DOCUMENTS = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "docs/*.md"]


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    version = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    name = f"pilotlight-{version}-{TARGET}"
    programs = pathlib.Path(sys.argv[1])
    files = {program: programs / program for program in ("pilotlight.exe", "pilotlightw.exe")}
    for pattern in DOCUMENTS:
        files |= {path.relative_to(root).as_posix(): path for path in sorted(root.glob(pattern))}
    made = root / "target" / "archive" / f"{name}.zip"
    made.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, path in files.items():
            # Without a time, which would differ each time.
            archive.writestr(zipfile.ZipInfo(f"{name}/{member}"), path.read_bytes(), zipfile.ZIP_DEFLATED)
    print(made)


main()
