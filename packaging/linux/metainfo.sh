#!/usr/bin/env bash
# Prints the AppStream metadata, filled in: version and pictures of this release, and its date, which is that of the
# last commit, or else today. PILOTLIGHT_HOMEPAGE replaces the address of the project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source packaging/release.sh
sed -e "s|@VERSION@|$version|g" -e "s|@DATE@|$(date -u -d "@$stamp" +%F)|" -e "s|@HOMEPAGE@|$homepage|g" \
    packaging/linux/pilotlight.metainfo.xml.in
