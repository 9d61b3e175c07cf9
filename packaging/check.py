#!/usr/bin/env python3
"""Checks that a release is complete: `check.py FOLDER`, the folder with all of its files.

Every file is there, and `cargo binstall` finds, by what Cargo.toml tells it, each target's archive and the program in it.
"""

import pathlib
import sys
import tarfile
import tomllib
import zipfile

# Those that `cargo binstall` may be asked for.
TARGETS = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
]
# What else a release has; `*` is its version.
FILES = [
    "pilotlight_*-1_amd64.deb",
    "pilotlight_*-1_arm64.deb",
    "pilotlight-*-x64-setup.exe",
    "pilotlight-*-source.tar.gz",
    "pilotlight-*-sbom.tar.gz",
]


def fill(template, **values):
    for name, value in values.items():
        template = template.replace("{ %s }" % name, value)
    assert "{" not in template, f"{template!r} has a name that this check does not know"
    return template


def members(path):
    if path.suffix == ".zip":
        return zipfile.ZipFile(path).namelist()
    return tarfile.open(path).getnames()


def main():
    folder = pathlib.Path(sys.argv[1])
    root = pathlib.Path(__file__).resolve().parents[1]
    manifest = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    package = manifest["package"] | manifest["workspace"]["package"]
    version = package["version"]
    for name in FILES:
        assert (folder / name.replace("*", version)).is_file(), f"{name} is missing"
    binstall = package["metadata"]["binstall"]
    for target in TARGETS:
        told = binstall | binstall["overrides"].get(target, {})
        values = {"version": version, "target": target, "repo": package["repository"]}
        url = fill(told["pkg-url"], **values)
        path = folder / url.rsplit("/", 1)[1]
        assert path.is_file(), f"{path.name} is missing, which binstall fetches for {target}"
        extension = ".exe" if "windows" in target else ""
        program = fill(told["bin-dir"], bin="pilotlight", **{"binary-ext": extension}, **values)
        assert program in members(path), f"{path.name} has no {program}"
    print(f"complete: version {version}")


main()
