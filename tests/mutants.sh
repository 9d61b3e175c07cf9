#!/usr/bin/env bash
# Mutates the core and the dialects, to see which mutants no test notices: tests/mutants.sh [OPTION OF CARGO-MUTANTS...],
# for example `tests/mutants.sh --file crates/core/src/gist.rs`, or `tests/mutants.sh --sharding round-robin --shard 3/60` for some
# of each file. They, and what the cases read logs with, are made a crate of their own, so that a mutant takes seconds
# instead of minutes. What it reports as missed may still be noticed by tests of other modules. Needs cargo-mutants
# (tests/long.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
crate=$(mktemp -d)
trap 'rm -rf "$crate"' EXIT
mkdir -p "$crate/src/system"
cp Cargo.lock "$crate"
cp -r --parents crates/core/src crates/agents/src/asked.rs crates/agents/src/tail{,.rs} crates/agents/src/{copilot,codex}/dialect{,.rs} "$crate"
cp -r --parents tests/{cases{,.rs},tail,traces,traces-codex} "$crate"
cp crates/system/src/{clock,identity,file_times,plain_file}.rs "$crate/src/system"
# Their own tests need more of the system, and `places` needs the menu.
sed -i '/^#\[cfg(test)\]$/,$d' "$crate/src/system/"{clock,plain_file}.rs
sed -i '/mod places;/d' "$crate/tests/cases.rs"
rm "$crate/tests/cases/places.rs"
cat >"$crate/src/lib.rs" <<'RUST'
#![allow(warnings)]
pub mod agent {
    pub mod codex { pub mod dialect; }
    pub mod copilot { pub mod dialect; }
    mod asked;
    pub mod tail;
}
pub mod core;
pub mod system { pub mod clock; pub(crate) mod file_times; pub(crate) mod identity; pub(crate) mod plain_file; }
RUST
{
    printf '[package]\nname = "pilotlight"\nversion = "0.1.0"\nedition = "2024"\n[profile.dev]\ndebug = false\n[workspace]\n[dependencies]\n'
    grep -E '^(anyhow|getrandom|hmac|jiff|memchr|serde|serde_json|sha2|strsim|thiserror|tracing|unicode-security|unicode-width) = ' Cargo.toml
    grep -m1 '^rustix = ' Cargo.toml
    printf '[dev-dependencies]\n'
    grep -E '^(proptest|tempfile) = ' Cargo.toml
} >"$crate/Cargo.toml"
target=${CARGO_TARGET_DIR:-$PWD/target}
CARGO_TARGET_DIR=$target/mutants cargo mutants --dir "$crate" --in-place --exclude 'src/{agent/tail,system}/**' \
    --exclude crates/agents/src/tail.rs --output "$target" --cargo-arg=--offline --colors never "$@"
