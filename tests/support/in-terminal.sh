#!/bin/sh
# shellcheck shell=bash
# Runs a test program in a terminal of its own. cargo starts this for each of them (.cargo/config.toml).
#
# What a command may order depends on who started it: whether an agent is above it, and whether it was typed into a
# terminal that is older than the session. What a program does at Ctrl-C depends on the signals that it inherited, and
# much else on its environment. None of that may come from whoever starts the tests: a shell that has ended, `nohup`, a
# service without a terminal, a tool of an agent. So a test program is a child of a shell that somebody types into, in
# a terminal that was opened for it, with nothing above it and nothing inherited but a few variables.

# What else cargo runs is for the user, who need not have bash. A bench reads its standard input, and is measured as it is.
case ${1%/*} in */deps) ;; *) exec "$@" ;; esac
case " $* " in *' --bench '*) exec "$@" ;; esac
[ "${BASH##*/}" = bash ] || exec bash "$0" "$@"
set -euo pipefail

[[ -n $(command -v script) ]] || {
    echo "The tests need 'script' (util-linux; on Debian bsdutils, on Fedora util-linux-script)." >&2
    exit 1
}

# What cargo, the developer and tests/*.sh say to a test program. One with a display gets all that the display needs.
kept=()
display=${PILOTLIGHT_TEST_DISPLAY:-}${PILOTLIGHT_TEST_DISPLAY_SCRIPT:-}${PILOTLIGHT_TEST_SWAY:-}
for name in $(compgen -e); do
    case $name in
    PATH | HOME | USER | TMPDIR | LD_LIBRARY_PATH | CARGO* | RUST* | LLVM_PROFILE_FILE | PROPTEST_*) ;;
    PILOTLIGHT_TEST_* | PILOTLIGHT_BLESS | PILOTLIGHT_RECORD | PILOTLIGHT_PICTURES | PILOTLIGHT_SOAK_*) ;;
    *) [[ -n $display ]] || continue ;;
    esac
    kept+=("$name=${!name}")
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The test program ends with this script, and so does what it started in its group.
trap 'kill -- "-$(<"$scratch/pid")" || :; exit 130' INT TERM HUP
mkfifo "$scratch/typed" "$scratch/ended"
{
    printf 'cd %q\numask 022\n' "$PWD"
    printf '%q ' env -i LANG=C.UTF-8 TERM=xterm-256color "${kept[@]}" \
        sh -c "echo \$\$ >'$scratch/pid' && exec \"\$@\"" sh "$@"
    printf '</dev/null >&3 2>&4 3>&- 4>&- 7>&-\necho $? >&7\nexit\n'
} >"$scratch/line"

exec 3>&1 4>&2
for open in /proc/"$$"/fd/*; do
    open=${open##*/}
    ((open < 5 || open == 255)) || exec {open}>&-
done
exec 5<>"$scratch/typed" 6<>"$scratch/ended" 7>"$scratch/ended" 8<"$scratch/ended" 6>&-
# In an empty home, the shell has no settings of the user's. The subshell ends at once, so that nothing is above it.
(
    exec 5>&- 8<&-
    exec env -i --default-signal PATH="$PATH" HOME="$scratch" HISTFILE= SHELL="$BASH" \
        script --quiet /dev/null <"$scratch/typed" >/dev/null 2>&1 &
)
exec 7>&-
printf ' . %q\n' "$scratch/line" >&5
# If the terminal is gone without a word, that is the end as well.
read -r code <&8 || { echo 'The terminal of the test program ended before it.' >&4 && code=1; }
exit "$code"
