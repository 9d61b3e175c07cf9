#!/usr/bin/env bash
# Renders the icons: `state.png`, `state-unseen.png`, the same in high contrast, and as templates for macOS; the numbers that go
# on them; and the program's own icon for the three systems. Needs rsvg-convert (librsvg), python3 and the font DejaVu Sans.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
styles=$(mktemp -d)
trap 'rm -rf "$styles"' EXIT

# A template is black where it is opaque: no outline, and what is drawn inside is cut out.
readonly SEEN='.unseen { display: none }'
readonly TEMPLATE='.outline { stroke: none } .fill, .unseen { fill: #000; stroke: none } .glyph { display: none }'
# White with a strong black outline: on a panel of any colour the shape alone tells, and no colour is needed.
readonly CONTRAST='.gap { display: none } .outline { stroke: #000; stroke-width: 6.5 } .fill { fill: #fff }
    .glyph, .glyph * { fill: #000; stroke: #000 } .unseen { stroke: #000; stroke-width: 4 }'
# In colour the mark has an outline, and needs no gap around it.
readonly COLOUR='.gap { display: none }'

# render STATE SUFFIX STYLE: 48 pixels, which is twice the usual 24 and four times 12.
render() {
    printf '%s\n' "$3" >"$styles/style.css"
    rsvg-convert --width 48 --height 48 --stylesheet "$styles/style.css" "$1.svg" --output "$1$2.png"
}

for state in well working needs-you trouble unknown; do
    render "$state" '' "$COLOUR $SEEN"
    render "$state" -unseen "$COLOUR"
    render "$state" -contrast "$CONTRAST $SEEN"
    render "$state" -unseen-contrast "$CONTRAST"
    render "$state" -template "$SEEN $TEMPLATE"
    render "$state" -unseen-template "$TEMPLATE"
done

for number in 1 2 3 4 5 6 7 8 9 +; do
    name=count-${number/+/more}
    sed "s/@<\/text>/$number<\/text>/" count.svg >"$name.svg"
    render "$name" '' '.plate { mask: none }'
    render "$name" -template '.plate { fill: #000; stroke: none } .glyph { display: none }'
    rm "$name.svg"
done

# The program itself: what a Linux desktop looks for in the theme that every other one falls back to, and the containers of
# Windows and macOS.
for size in 16 22 24 32 48 64 128 256; do
    folder=hicolor/${size}x$size/apps
    mkdir -p "$folder"
    rsvg-convert --width $size --height $size pilotlight.svg --output "$folder/pilotlight.png"
done
for size in 16 20 24 32 40 48 64 128 256 512; do
    rsvg-convert --width $size --height $size pilotlight.svg --output "$styles/$size.png"
done
python3 pack.py pilotlight.ico "$styles"
python3 pack.py pilotlight.icns "$styles"
