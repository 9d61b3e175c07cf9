#!/usr/bin/env bash
# Prints the AppStream metadata, filled in: version and pictures of this release, and its date, which is that of the
# last commit, or else today. PILOTLIGHT_HOMEPAGE replaces the address of the project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$(sed -nE 's/^version = "(.*)"$/\1/p' Cargo.toml | head -1)
homepage=${PILOTLIGHT_HOMEPAGE:-$(sed -nE 's/^repository = "(.*)"$/\1/p' Cargo.toml)}
stamp=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
sed -e "s|@VERSION@|$version|g" -e "s|@DATE@|$(date -u -d "@$stamp" +%F)|" -e "s|@HOMEPAGE@|$homepage|g" \
    packaging/linux/pilotlight.metainfo.xml.in
