#!/usr/bin/env bash
# Renders the icons: `state.png`, `state-unseen.png` and, for macOS, the same as templates. Needs rsvg-convert (librsvg).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
styles=$(mktemp -d)
trap 'rm -rf "$styles"' EXIT

# A template is black where it is opaque: no outline, and what is drawn inside is cut out.
readonly SEEN='.unseen { display: none }'
readonly TEMPLATE='.outline { stroke: none } .fill, .unseen { fill: #000; stroke: none } .glyph { display: none }'
# In colour the mark has an outline, and needs no gap around it.
readonly COLOUR='.gap { display: none }'

# render STATE SUFFIX STYLE: 48 pixels, which is twice the usual 24 and four times 12.
render() {
    printf '%s\n' "$3" >"$styles/style.css"
    rsvg-convert --width 48 --height 48 --stylesheet "$styles/style.css" "$1.svg" --output "$1$2.png"
}

for state in well working needs-you trouble; do
    render "$state" '' "$COLOUR $SEEN"
    render "$state" -unseen "$COLOUR"
    render "$state" -template "$SEEN $TEMPLATE"
    render "$state" -unseen-template "$TEMPLATE"
done
