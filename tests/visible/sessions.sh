# shellcheck shell=bash
# Synthetic sessions for tests/visible.sh, which sources this: folders with logs as Copilot writes them, owners with its
# name, and a fake Copilot that can resume a session. Needs HOME_DIR, CODE, OWNERS, STATE and SCRATCH.

# Prints the time $1 seconds ago in Copilot's format. Exact: what is older than a session's owner was not begun by it.
ago() {
    date -u -d "$1 seconds ago" +%FT%T.%3NZ
}

# session N FOLDER TITLE BRANCH: creates the folder of the session whose id ends in N. Events go there from now on.
session() {
    local WORK=$CODE/$2
    id=$(printf '36535f61-5c7b-4f09-a70b-2f8aed97%04d' "$1")
    folder=$HOME_DIR/session-state/$id
    events=0
    set -- "$1" "$3" "$4"
    mkdir -p "$WORK"
    mkdir -p "$folder"
    cat >"$folder/workspace.yaml" <<YAML
id: $id
cwd: $WORK
branch: $3
client_name: github/cli
name: $2
created_at: $(ago $((7200 - $1 * 60)))
YAML
    event session.start 7000 '{"sessionId":"'"$id"'","selectedModel":"gpt-5.2","context":{"cwd":"'"$WORK"'"}}'
}

# event TYPE SECONDS_AGO DATA: appends one line to the log.
event() {
    printf '{"type":"%s","data":%s,"id":"%s-%d","timestamp":"%s","parentId":"%s-%d"}\n' \
        "$1" "$3" "$id" $((events + 1)) "$(ago "$2")" "$id" "$events" >>"$folder/events.jsonl"
    events=$((events + 1))
}

prompt() { event user.message "$1" '{"content":"go on"}'; event assistant.turn_start "$1" '{"turnId":"0"}'; }
requests() { event assistant.message "$1" '{"model":"gpt-5.2","content":"I will.","toolRequests":[{"toolCallId":"'"$2"'"}]}'; }
tool() { event tool.execution_start "$1" '{"toolCallId":"'"$2"'","toolName":"'"$3"'","arguments":{"command":"'"$4"'"}}'; }
tool_done() { event tool.execution_complete "$1" '{"toolCallId":"'"$2"'","success":true}'; }
answer() { event assistant.message "$1" '{"model":"gpt-5.2","content":"'"$2"'","toolRequests":[]}'; event assistant.turn_end "$1" '{"turnId":"0"}'; }
denied() {
    tool "$1" "$2" bash 'make'
    event tool.execution_complete "$1" '{"toolCallId":"'"$2"'","success":false,"error":{"code":"denied","message":"Permission denied and could not request permission from user. Stop."}}'
}

runs_copilot() { [[ $(readlink "/proc/$1/exe") == "$OWNERS/copilot" ]]; }

# Gives the session an owner: a copy of sleep(1) with Copilot's name that holds the folder as Copilot does. Copilot
# creates its lock itself, so the lock is created only after the process runs that program.
owned() {
    perl -e 'use Fcntl; $^F = 999; open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; flock(F, 6) or die; exec $ARGV[1], 9000' \
        "$folder" "$OWNERS/copilot" &
    owner=$!
    owners="$owners $owner"
    until_true 5 'the owner' runs_copilot "$owner"
    echo "$owner" >"$folder/inuse.$owner.lock"
}

# A fake Copilot for resuming: its process holds the session as the other owners do, and continues its turn. No two events have the
# same id: one that was there before counts as read.
make_copilot() {
    mkdir -p "$OWNERS" "$SCRATCH/bin"
    cp "$(command -v sleep)" "$OWNERS/copilot"
    cat >"$SCRATCH/bin/copilot" <<'SH'
#!/usr/bin/env bash
[[ $1 == --resume=* ]] || { echo 'GitHub Copilot CLI 1.0.102.'; exit; }
folder=$HOME_DIR/session-state/${1#--resume=}
at() { date -u +%FT%T.%3NZ; }
printf '{"type":"session.resume","data":{},"id":"again-%s-1","timestamp":"%s"}\n' $$ "$(at)" >>"$folder/events.jsonl"
printf '{"type":"user.message","data":{"content":"go on"},"id":"again-%s-2","timestamp":"%s","parentId":"again-%s-1"}\n' $$ "$(at)" $$ >>"$folder/events.jsonl"
rm -f "$folder"/inuse.*
echo $$ >>"$SCRATCH/resumed"
echo $$ >"$folder/inuse.$$.lock"
exec perl -e 'use Fcntl; $^F = 999; open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; flock(F, 6) or die; exec $ARGV[1], 9000' "$folder" "$OWNERS/copilot"
SH
    printf '#!/bin/sh\n[ "$1" != -e ] || shift\nexec "$@"\n' >"$SCRATCH/bin/terminal"
    chmod +x "$SCRATCH/bin/copilot" "$SCRATCH/bin/terminal"
    mkdir -p "$XDG_CONFIG_HOME/pilotlight"
    printf '[actions]\nterminal = ["%s/bin/terminal"]\n[notifications]\n' "$SCRATCH" >"$XDG_CONFIG_HOME/pilotlight/config.toml"
    # No popup in front of the menu.
    printf '%s = false\n' needs-permission needs-input permission-lost stuck crashed failed done \
        >>"$XDG_CONFIG_HOME/pilotlight/config.toml"
    touch "$STATE/welcomed"
}

# crashed_session N, working_session N NAME TITLE, asking_session N: simple ones, whose turns began under their owners.
crashed_session() {
    session "$1" "crash-$1" 'Bump the dependencies' main
    prompt 1000; requests 990 a; tool 980 a bash 'cargo update'
    echo 4194000 >"$folder/inuse.4194000.lock"
}

working_session() {
    session "$1" "$2-$1" "$3" main; owned
    prompt 0; requests 0 a; tool 0 a bash 'make'
}

asking_session() {
    working_session "$1" asks 'Asks all the time'
    event permission.requested 0 '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a","fullCommandText":"make"}}'
}

one_session() {
    session 1 billing-api 'Write the migration' main; owned
    prompt 400; requests 395 a; tool 390 a bash 'rm -rf build'
    event permission.requested 120 '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a","fullCommandText":"rm -rf build && cargo test"}}'
}

twelve_sessions() {
    session 2 web-shop 'Cart & checkout' release/2.0; owned
    prompt 400; requests 390 a
    event tool.execution_start 380 '{"toolCallId":"a","toolName":"ask_user","arguments":{"question":"Which one do you want?","choices":["one","two"]}}'
    session 3 infra 'Load test' schema; owned
    prompt 900; requests 890 a; tool 888 a bash 'ls'; tool_done 800 a
    session 4 ml-train 'Train again' perf/render; owned
    prompt 43; requests 35 a; tool 32 a bash 'python train.py'
    session 5 docs 'Translate the error messages' main; owned
    prompt 300; requests 290 a; tool 280 a bash 'grep -r'; tool_done 200 a
    session 6 tools 'Tidy up the test support' tests; owned
    prompt 190; answer 185 'Everything is tidy now.'
    session 7 scripts 'Port the scripts to the new shell' main; owned
    prompt 700; event assistant.turn_end 650 '{"turnId":"0"}'
    event session.error 650 '{"errorType":"rate_limit","message":"Too many requests, try again later","statusCode":429}'
    session 8 infra 'Rotate TLS' review; owned
    prompt 800; denied 700 a; denied 690 b; denied 680 c; answer 670 'I was not allowed to.'
    session 9 deps 'Bump the dependencies' deps
    prompt 1000; requests 990 a; tool 980 a bash 'cargo update'
    echo 4194000 >"$folder/inuse.4194000.lock"
    session 10 build 'Explain the build cache' main; owned
    event user.message 4000 '{"content":"go"}'; answer 3900 'It is content-addressed.'
    event session.shutdown 3800 '{"shutdownType":"routine"}'
    kill "$owner"
    rm "$folder/inuse.$owner.lock"
    for n in 11 12 13; do
        session "$n" "service-$n" "Answered long ago" main; owned
        prompt $((n * 100)); answer $((n * 100 - 20)) 'Done.'
    done
}

forty_sessions() {
    local n
    for n in $(seq 14 40); do
        session "$n" "project-number-$n-of-many" "A longer title of session $n" main; owned
        case $((n % 4)) in
        0) prompt $((n * 20)); requests $((n * 19)) a; tool $((n * 19)) a bash 'make'
            event permission.requested $((n * 19)) '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a","fullCommandText":"make -j8 all install"}}' ;;
        1 | 2) prompt $((n * 10)); requests 15 a; tool 12 a bash 'npm run build' ;;
        3) prompt $((n * 100)); answer $((n * 100 - 20)) 'Done.' ;;
        esac
    done
}
