#!/usr/bin/env bash
# Assembles Pilotlight.app from a program built for macOS, on any system with bash and Python.
#
#   packaging/macos/bundle.sh PROGRAM VERSION FOLDER     makes FOLDER/Pilotlight.app
#
# To sign and notarise it, on a Mac with a Developer ID in the keychain:
#
#   codesign --force --options runtime --timestamp --sign "Developer ID Application: NAME (TEAM)" FOLDER/Pilotlight.app
#   ditto -c -k --keepParent FOLDER/Pilotlight.app Pilotlight.zip
#   xcrun notarytool submit Pilotlight.zip --apple-id ID --team-id TEAM --password PASSWORD --wait
#   xcrun stapler staple FOLDER/Pilotlight.app
#
# Without one, `codesign --force --sign - FOLDER/Pilotlight.app` lets it run on the machine where it was signed. Apple
# silicon runs nothing that is not signed at all.
set -euo pipefail
if (($# != 3)); then
    echo 'Usage: packaging/macos/bundle.sh PROGRAM VERSION FOLDER' >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
app=$3/Pilotlight.app
rm -rf "$app"
mkdir -p "$app/Contents/MacOS" "$app/Contents/Resources"
install -m 755 "$1" "$app/Contents/MacOS/pilotlight"
install -m 644 "$here/assets/icon/pilotlight.icns" "$app/Contents/Resources/pilotlight.icns"
install -m 644 "$here/LICENSE-MIT" "$here/LICENSE-APACHE" "$app/Contents/Resources/"
# Info.plist allows only numbers in a version: drop what follows a hyphen.
sed "s/@VERSION@/${2%%-*}/" "$here/packaging/macos/Info.plist.in" >"$app/Contents/Info.plist"
printf 'APPL????' >"$app/Contents/PkgInfo"
python3 "$here/packaging/macos/check.py" "$app"
echo "$app"
