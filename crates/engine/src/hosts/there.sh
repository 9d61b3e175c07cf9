# What `pilotlight host add` and `host remove` have a shell on the other machine do, over its standard input: it says what is
# there, and then does what it is told, or nothing. Whoever sends it waits for "ready", and for "send", before
# anything more is sent: a shell may read ahead. Everything is in functions, so that it was read whole before it runs.

# What no line that is said can hold.
newline='
'

# What this program says first on standard output, if it is Pilotlight. A warning of it may come before that.
greeting() {
    sed -n '/^{"pilotlight":/{p;q;}'
}

# Says so if a file is Pilotlight, and which.
look() {
    case $1 in *"$newline"*) return 0 ;; esac
    [ -f "$1" ] && [ -x "$1" ] || return 0
    version=$("$1" --version </dev/null 2>/dev/null | head -n 1)
    case $version in "pilotlight "*) ;; *) return 0 ;; esac
    hello=$("$1" serve --stdio </dev/null 2>/dev/null | greeting)
    printf 'program %s\nversion %s\nhello %s\n' "$1" "$version" "$hello"
}

# Whether the place for a program is taken by something else.
is_taken() {
    if [ -L "$own" ]; then return 0; fi
    [ -e "$own" ] || return 1
    case $("$own" --version </dev/null 2>/dev/null | head -n 1) in "pilotlight "*) return 1 ;; esac
}

# Undoes what was begun, down to the folders that were made for it.
undo() {
    if [ -n "$new" ]; then rm -f "$new"; fi
    if [ -n "$made" ]; then rmdir "$folder" "$HOME/.local"; fi 2>/dev/null
}

# Undoes it before it says so: whoever listens may go then.
fail() {
    undo
    printf 'failed %s\n' "$*"
    exit
}

# Two words that tell this program from another. Busybox may have no `cksum`.
sum() {
    read -r first second rest <<END
$({ cksum || sha256sum; } <"$own" 2>/dev/null)
END
    echo "$first $second${rest:+}"
}

# Takes a program of so many bytes from standard input. It gets its name only once it has run here.
copy() {
    if is_taken; then fail taken; fi
    if [ ! -d "$folder" ]; then made=1; fi
    trap undo EXIT
    trap 'exit 1' HUP INT QUIT PIPE TERM
    mkdir -p "$folder" || fail folder
    rm -f "$folder"/.pilotlight-new.*
    new=$folder/.pilotlight-new.$$
    true >"$new" || fail folder
    echo send
    cat >"$new" || fail write
    [ "$(wc -c <"$new")" -eq "$1" ] || fail cut
    chmod 755 "$new" || fail write
    ran=$("$new" --version </dev/null 2>&1 | tail -n 1)
    case $ran in "pilotlight "*) ;; *) fail run "$ran" ;; esac
    said=$("$new" serve --stdio </dev/null 2>&1 | head -n 20)
    hello=$(printf '%s\n' "$said" | greeting)
    case $hello in
    *schema?:"$2",*) ;;
    '') fail mute "$(printf '%s\n' "$said" | tail -n 1)" ;;
    *) fail version "$ran" ;;
    esac
    mv -f "$new" "$own" || fail write
    trap - EXIT
    printf 'sum %s\ndone %s\n' "$(sum)" "$ran"
}

# A process that runs from the program, but for those of the connection that is just ending. Without /proc, none is seen.
user() {
    for process in /proc/[0-9]*; do
        [ "$process/exe" -ef "$own" ] || continue
        printf '%s %s' "${process#/proc/}" "$(tr '\000' ' ' <"$process/cmdline" 2>/dev/null)"
        return
    done
}

# Whether the program has put a bridge into an agent here.
bridged() {
    [ -e "$kept/bridge.key" ] || [ -e "$kept/bridge-claude-code.homes" ]
}

# Says who uses the program, and, if it is still the one with this sum, whether it has put a bridge into an agent here.
state() {
    if [ "$(sum)" = "$1 $2" ] && bridged; then echo bridge; fi
    tries=0
    used=$(user)
    while [ -n "$used" ] && [ "$tries" -lt 3 ]; do
        sleep 1
        tries=$((tries + 1))
        used=$(user)
    done
    if [ -n "$used" ]; then printf 'used %s\n' "$used"; fi
    echo ready
}

# Has the program take its bridges out of the agents.
unbridge() {
    said=$("$own" bridge remove --yes </dev/null 2>&1 | tail -n 1)
    if bridged; then printf 'failed bridge %s\n' "$said"; else echo unbridged; fi
}

# Removes the program if it is still the one with this sum, and of these folders those that were made for it and hold nothing
# else. What it remembers goes with it, if that is named.
remove() {
    if [ ! -e "$own" ]; then
        echo gone
        return
    fi
    if [ -z "$2" ] || [ "$(sum)" != "$1 $2" ]; then fail changed; fi
    rm -f "$own" || fail remove
    case " $3 " in *" kept "*)
        # On macOS the user's settings are in the same folder.
        if [ -d "$kept" ] && [ ! -L "$kept" ] && [ ! -e "$kept/config.toml" ]; then rm -rf "$kept"; fi
        ;;
    esac
    for made in bin state local settings config; do
        case " $3 " in *" $made "*) ;; *) continue ;; esac
        case $made in
        bin) rmdir "$folder" ;;
        state) rmdir "${kept%/*}" ;;
        local) rmdir "$HOME/.local" ;;
        settings) rmdir "$settings" ;;
        config) rmdir "${settings%/*}" ;;
        esac 2>/dev/null
    done
    echo removed
}

main() {
    folder=$HOME/.local/bin
    own=$folder/pilotlight
    case $(uname -s) in
    Darwin) kept="$HOME/Library/Application Support/pilotlight" ;;
    *) kept=${XDG_STATE_HOME:-$HOME/.local/state}/pilotlight ;;
    esac
    settings=${XDG_CONFIG_HOME:-$HOME/.config}/pilotlight
    new=
    made=
    seen=
    echo pilotlight-there
    case $HOME in *"$newline"*) echo odd-home && exit ;; esac
    printf 'system %s\nmachine %s\nhome %s\n' "$(uname -s)" "$(uname -m)" "$HOME"
    absent=
    if [ ! -e "$HOME/.local" ]; then absent="$absent local"; fi
    if [ ! -e "$folder" ]; then absent="$absent bin"; fi
    if [ ! -e "${kept%/*}" ]; then absent="$absent state"; fi
    if [ ! -e "$kept" ]; then absent="$absent kept"; fi
    if [ ! -e "${settings%/*}" ]; then absent="$absent config"; fi
    if [ ! -e "$settings" ]; then absent="$absent settings"; fi
    printf 'absent%s\n' "$absent"
    on_path=$(command -v pilotlight 2>/dev/null)
    for program in "$on_path" "$own" "$HOME/.cargo/bin/pilotlight" /opt/homebrew/bin/pilotlight /usr/local/bin/pilotlight; do
        case " $seen " in *" $program "*) continue ;; esac
        seen="$seen $program"
        look "$program"
    done
    if is_taken; then echo taken; fi
    echo ready
    while read -r order first second rest; do
        case $order in
        state | unbridge) "$order" "$first" "$second" ;;
        copy | remove)
            "$order" "$first" "$second" "$rest"
            exit
            ;;
        *) exit ;;
        esac
    done
}

# shellcheck disable=SC2317 # what `main` is told, it runs
main; exit
