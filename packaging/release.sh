# Shared by the scripts that make a release: its version, address and date, and how its archives are packed. Sourced by
# them, in the root of the sources.
# shellcheck shell=bash

# What is sourced is used by the script that does so.
# shellcheck disable=SC2034
version=$(sed -nE 's/^version = "(.*)"$/\1/p' Cargo.toml | head -1)
# shellcheck disable=SC2034
homepage=${PILOTLIGHT_HOMEPAGE:-$(sed -nE 's/^repository = "(.*)"$/\1/p' Cargo.toml)}
# The date of the last commit, else today: the same sources make the same files.
stamp=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

# pack NAME: packs target/archive/NAME, removes it, and prints the path of the archive. It is the same whoever packs it,
# whatever their umask and the order of files on their disk.
pack() {
    local made=target/archive
    tar --create --directory "$made" --format=gnu --sort=name --mtime="@$stamp" --owner=0 --group=0 --numeric-owner \
        --mode=u=rwX,go=rX "$1" | gzip --no-name --best >"$made/$1.tar.gz"
    rm -r "${made:?}/$1"
    echo "$PWD/$made/$1.tar.gz"
}
