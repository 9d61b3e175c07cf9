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
version=$(sed -nE 's/^version = "(.*)"$/\1/p' Cargo.toml | head -1)
name=pilotlight-$version-$2
made=target/archive
# The date of the last commit, else today: the same sources make the same archive.
stamp=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

rm -rf "${made:?}/$name" "$made/root"
packaging/linux/install.sh "$program" "$made/root" /usr
mv "$made/root/usr" "$made/$name"
rmdir "$made/root"
# Whoever packs it, whatever their umask and the order of files on their disk.
tar --create --directory "$made" --format=gnu --sort=name --mtime="@$stamp" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX "$name" | gzip --no-name --best >"$made/$name.tar.gz"
rm -r "${made:?}/$name"
echo "$PWD/$made/$name.tar.gz"
