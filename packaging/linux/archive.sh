#!/usr/bin/env bash
# Packs a built program with all that belongs to it, as a tree for /usr: for systems that have no package of ours, for
# recipes that need not compile, and for `cargo binstall`, which finds the archive by its name. Prints the path,
# target/archive/pilotlight-VERSION-TARGET.tar.gz.
#
#   packaging/linux/archive.sh PROGRAM TARGET       TARGET only names the archive: x86_64-unknown-linux-musl
#
# The program must run on this machine (packaging/linux/install.sh).
set -euo pipefail
if (($# != 2)); then
    echo 'Usage: packaging/linux/archive.sh PROGRAM TARGET' >&2
    exit 2
fi
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source packaging/release.sh
name=pilotlight-$version-$2
made=target/archive

rm -rf "${made:?}/$name" "$made/tree"
packaging/linux/install.sh "$program" "$made/tree" /usr
mv "$made/tree/usr" "$made/$name"
rmdir "$made/tree"
pack "$name"
