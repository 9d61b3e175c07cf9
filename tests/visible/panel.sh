# shellcheck shell=bash
# The program's menu on a real panel, for tests/visible.sh and storm.sh, which source this after display.sh: finds the icon's menu,
# opens it with the mouse and knows where its entries are. A desktop's script says how high its panel and its rows are.

shot() { import -window root "$OUT/$VARIANT-$1.png"; }
# point X Y: moves the pointer there in steps, as a hand would: menus react to motion. Where a shell keeps the pointer, xdotool would wait for ever.
point() { timeout 10 xdotool mousemove --sync $(($1 + 3)) $(($2 + 1)) sleep 0.1 mousemove $(($1 + 1)) "$2" sleep 0.1 mousemove "$1" "$2" || true; sleep 0.3; }

bus() { gdbus call --session --timeout 5 -d org.freedesktop.DBus -o / -m "org.freedesktop.DBus.$1" "${@:2}"; }

# Sets `icon` to the bus name of the program's connection that serves the menu.
find_name() {
    for icon in $(bus ListNames | grep -oE ':[0-9]+\.[0-9]+'); do
        ! bus GetConnectionUnixProcessID "$icon" | grep -q " $program,)" || ! entries | grep -q . || return 0
    done
    return 1
}

# Prints the menu's entries from the top down: a label or a separator each. It reads all levels: who reads one at a time is
# taken for Plasma, to whom more is sent.
entries() {
    gdbus call --session --timeout 5 -d "$icon" -o /MenuBar -m com.canonical.dbusmenu.GetLayout 0 -- -1 "['label', 'type']" |
        perl -e 'local $/; my ($text, $depth) = (<STDIN>, 0);
            while ($text =~ /(\x27(?:label|type)\x27: <(?:\x27(?:[^\x27\\]|\\.)*\x27|"(?:[^"\\]|\\.)*")>)|\x27(?:[^\x27\\]|\\.)*\x27|"(?:[^"\\]|\\.)*"|([\[\]])/g) {
                if (defined $2) { $depth += $2 eq "[" ? 1 : -1 } elsif (defined $1 && $depth == 1) { print "$1\n" }
            }'
}

close_menus() {
    xdotool key Escape key Escape key Escape
    sleep 0.5
}

# Sets menu_width, menu_height, menu_x and menu_y to the area that differs from before the menu was opened.
find_menu() {
    import -window root "$SCRATCH/after.png"
    read -r menu_width menu_height menu_x menu_y < <(convert "$SCRATCH/before.png" "$SCRATCH/after.png" -compose difference -composite \
        -crop "+0+$PANEL_HEIGHT" +repage -colorspace gray -threshold 3% -trim -format '%w %h %X %Y\n' info: | tr -d +)
}

# Whether the menu is open and fully drawn.
menu_stands() {
    local before
    find_menu
    before="$menu_width $menu_height"
    sleep 0.5
    find_menu
    ((menu_width > 150 && menu_height > 50)) && [[ "$menu_width $menu_height" == "$before" ]]
}

# Opens the menu, with the left button if the panel supports that. Sets menu_x, menu_y, menu_width, menu_height and
# row_height.
open_menu() {
    local all lines bottom
    close_menus
    point $((icon_x - 300)) $((icon_y + 300))
    sleep 0.3
    import -window root "$SCRATCH/before.png"
    point "$icon_x" "$icon_y"
    xdotool click "${BUTTON:-1}"
    until_true 20 'the menu' menu_stands
    menu_y=$((menu_y + PANEL_HEIGHT)) bottom=$((menu_y + menu_height))
    entries >"$SCRATCH/entries"
    all=$(wc -l <"$SCRATCH/entries") lines=$(grep -c separator "$SCRATCH/entries")
    row_height=$(((menu_height - 2 * EDGE - lines * LINE) / (all - lines)))
    ((menu_width > 150 && row_height >= 18 && row_height <= 40)) ||
        fail "there is no menu with $all entries: ${menu_width}x$menu_height pixels, $row_height per row"
    : "${usual_height:=$row_height}"
    ((row_height >= usual_height - 1)) || fail "$all entries do not have enough room: $row_height pixels per row, not $usual_height"
    ((bottom <= height)) || fail "the menu extends beyond the display: $bottom of $height pixels"
}

# menu NAME: opens the menu and takes a screenshot.
menu() {
    open_menu
    shot "$1"
}

# row TEXT: prints the y coordinate of the middle of the entry with this text.
row() {
    local before lines
    before=$(grep -n -m 1 -F -- "$1" "$SCRATCH/entries" | cut -d: -f1)
    [[ -n $before ]] || fail "the menu has no $1: $(<"$SCRATCH/entries")"
    lines=$(head -n "$before" "$SCRATCH/entries" | grep -c separator || true)
    echo $((menu_y + EDGE + (before - 1 - lines) * row_height + lines * LINE + row_height / 2))
}
