#!/usr/bin/env bash
# Mutates the core and the log formats, to see which mutants no test notices: tests/mutants.sh [OPTION OF CARGO-MUTANTS...],
# for example `tests/mutants.sh --file crates/core/src/short_reason.rs`, or `tests/mutants.sh --sharding round-robin --shard 3/60` for
# some of each file. They, and what the cases read logs with, are made a workspace of their own, so that a mutant takes
# seconds instead of minutes. What it reports as missed may still be noticed by tests of other modules. Needs cargo-mutants
# (tests/long.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cp Cargo.lock "$made"
cp -r --parents crates/{core,system} crates/agents/Cargo.toml tests/{cases{,.rs},tail,claude-code,traces,traces-codex} "$made"
cp -r --parents crates/agents/src/{asked.rs,tail{,.rs},{claude_code,copilot,codex}/log_format{,.rs}} "$made"
# It needs the menu.
sed -i '/mod places;/d' "$made/tests/cases.rs"
rm "$made/tests/cases/places.rs"
cat >"$made/crates/agents/src/lib.rs" <<'RUST'
#![allow(warnings)]
pub mod claude_code { pub mod log_format; }
pub mod codex { pub mod log_format; }
pub mod copilot { pub mod log_format; }
mod asked;
pub mod tail;
RUST
mkdir "$made/src"
: >"$made/src/lib.rs"
# The workspace's part of Cargo.toml, and a package that has the cases.
{
    sed '/^\[package\]$/,$d' Cargo.toml
    printf '[package]\nname = "cases"\nversion = "0.1.0"\nedition = "2024"\n[workspace.lints]\n[dev-dependencies]\n'
    printf '%s.workspace = true\n' pilotlight-{core,system,agents} jiff proptest serde_json tempfile
    printf '[profile.dev]\ndebug = false\n'
} >"$made/Cargo.toml"
sed -i -E '/^pilotlight-(engine|demo) = /d' "$made/Cargo.toml"
target=${CARGO_TARGET_DIR:-$PWD/target}
CARGO_TARGET_DIR=$target/mutants cargo mutants --dir "$made" --in-place --workspace \
    --test-package pilotlight-core,pilotlight-agents,cases --exclude 'crates/{system,agents/src/tail}/**' \
    --exclude crates/agents/src/tail.rs --output "$target" --cargo-arg=--offline --colors never "$@"
