#!/usr/bin/env bash
# Installs a built program, with everything that belongs to it, in the places of a Linux package.
#
#   packaging/linux/install.sh PROGRAM ROOT PREFIX      for example: target/dist/pilotlight "$pkgdir" /usr
#
# ROOT is the folder that represents / while the package is made, or empty. The program prints its own manual and
# completions, so it must run on this machine; PILOTLIGHT_RUNNER names an emulator for one of another architecture.
set -euo pipefail
if (($# != 3)); then
    echo 'Usage: packaging/linux/install.sh PROGRAM ROOT PREFIX' >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(realpath "$1")
prefix=$3
to=$2$prefix
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

run() { ${PILOTLIGHT_RUNNER:-} "$program" "$@"; }

[[ $program -ef $to/bin/pilotlight ]] || install -Dm755 "$program" "$to/bin/pilotlight"
run man --dir "$scratch"
install -Dm644 -t "$to/share/man/man1" "$scratch"/*.1
complete() {
    run completions "$1" >"$scratch/completions"
    install -Dm644 "$scratch/completions" "$to/share/$2"
}
complete bash bash-completion/completions/pilotlight
complete zsh zsh/site-functions/_pilotlight
complete fish fish/vendor_completions.d/pilotlight.fish
install -Dm644 -t "$to/share/applications" "$here/packaging/linux/pilotlight.desktop"
sed "s|^ExecStart=/usr/|ExecStart=$prefix/|" "$here/packaging/linux/pilotlight.service" >"$scratch/pilotlight.service"
install -Dm644 -t "$to/lib/systemd/user" "$scratch/pilotlight.service"
"$here/packaging/linux/metainfo.sh" >"$scratch/io.github.pilotlight.pilotlight.metainfo.xml"
install -Dm644 -t "$to/share/metainfo" "$scratch/io.github.pilotlight.pilotlight.metainfo.xml"
for icon in "$here"/assets/icon/hicolor/*/apps/pilotlight.png; do
    install -Dm644 "$icon" "$to/share/icons/${icon#"$here"/assets/icon/}"
done
install -Dm644 -t "$to/share/icons/hicolor/scalable/apps" "$here/assets/icon/pilotlight.svg"
install -Dm644 -t "$to/share/icons/hicolor/symbolic/apps" "$here/assets/icon/pilotlight-symbolic.svg"
install -Dm644 -t "$to/share/doc/pilotlight" "$here"/{README,CHANGELOG}.md
install -Dm644 -t "$to/share/doc/pilotlight/docs" "$here"/docs/*.md
install -Dm644 -t "$to/share/licenses/pilotlight" "$here"/LICENSE-*
