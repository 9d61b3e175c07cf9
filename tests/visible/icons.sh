#!/usr/bin/env bash
# Draws the icons on light, grey and dark panels, at the usual sizes, and as colour-blind people see them. One picture,
# for visual inspection: target/visible/icons.png.
#
#   tests/visible/icons.sh              the picture
#   tests/visible/icons.sh --readme     also copies it to assets/screenshots
#
# Needs rsvg-convert (librsvg2-bin). Linux only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ -z $(command -v rsvg-convert) ]]; then
    echo 'Install this first: sudo apt-get install --no-install-recommends librsvg2-bin' >&2
    exit 1
fi
pictures=$(mktemp -d)
trap 'rm -rf "$pictures"' EXIT
PILOTLIGHT_PICTURES=$pictures cargo test --quiet --lib pictures_to_look_at -- --ignored >/dev/null

readonly ROWS=(16 22 32 48) WIDTH=1312
# The matrices are those of Machado, Oliveira and Fernandes (2009) for the complete lack of one type of cone.
readonly FILTERS='<filter id="red" color-interpolation-filters="linearRGB"><feColorMatrix values="0.152286 1.052583 -0.204868 0 0 0.114503 0.786281 0.099216 0 0 -0.003882 -0.048116 1.051998 0 0 0 0 0 1 0"/></filter>
<filter id="green" color-interpolation-filters="linearRGB"><feColorMatrix values="0.367322 0.860646 -0.227968 0 0 0.280085 0.672501 0.047413 0 0 -0.011820 0.042940 0.968881 0 0 0 0 0 1 0"/></filter>
<filter id="blue" color-interpolation-filters="linearRGB"><feColorMatrix values="1.255528 -0.076749 -0.178779 0 0 -0.078411 0.930809 0.147602 0 0 0.004733 0.691367 0.303900 0 0 0 0 0 1 0"/></filter>
<filter id="grey"><feColorMatrix type="saturate" values="0"/></filter>'

# image FILE X Y SIZE [FILTER]
image() {
    printf '<image x="%s" y="%s" width="%s" height="%s" %s href="data:image/png;base64,%s"/>\n' "$2" "$3" "$4" "$4" \
        "${5:+filter=\"url(#$5)\"}" "$(base64 -w0 "$1")"
}

# panel Y HEIGHT COLOUR: a strip of a panel.
panel() { printf '<rect x="0" y="%s" width="%s" height="%s" fill="%s"/>\n' "$1" "$WIDTH" "$2" "$3"; }

sheet() {
    local y=0 x size colour file filter
    for colour in '#f5f5f5' '#8a8f98' '#1d2027'; do
        for size in "${ROWS[@]}"; do
            panel $y $((size + 10)) "$colour"
            x=8
            for file in "$pictures"/*.png; do
                image "$file" $x $((y + 5)) "$size"
                x=$((x + (size > 22 ? size + 2 : 34)))
                ((x <= WIDTH)) || break
            done
            y=$((y + size + 10))
        done
    done
    for filter in red green blue grey; do
        panel $y 42 '#f5f5f5'
        panel $((y + 42)) 42 '#1d2027'
        x=8
        for file in "$pictures"/?[0-3].png; do
            image "$file" $x $((y + 5)) 32 $filter
            image "$file" $x $((y + 47)) 32 $filter
            x=$((x + 40))
        done
        y=$((y + 84))
    done
    height=$y
}

mkdir -p target/visible
sheet >"$pictures/body"
{
    printf '<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s"><defs>%s</defs>\n' $WIDTH $height "$FILTERS"
    cat "$pictures/body"
    echo '</svg>'
} >"$pictures/sheet.svg"
rsvg-convert --unlimited "$pictures/sheet.svg" --output target/visible/icons.png
echo "picture: $PWD/target/visible/icons.png"
if [[ ${1:-} == --readme ]]; then
    cp target/visible/icons.png assets/screenshots/icons.png
fi
