#!/usr/bin/env bash
# What takes too long for every change, beside what tests/all.sh runs: the tests marked `#[ignore]`, and the benches.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=all.sh
source "$(dirname "${BASH_SOURCE[0]}")/all.sh"

prepare
stage 'build tests' cargo test --locked --quiet --lib --bins --tests --no-run
loud_stage 'ignored tests' cargo test --locked --quiet --lib --bins --tests -- --ignored --test-threads=2
# Without benches, the pattern would match nothing and be an error.
if compgen -G 'benches/*.rs' >/dev/null; then
    stage 'build benches' cargo bench --locked --quiet --bench '*' --no-run
    loud_stage 'benches' cargo bench --locked --quiet --bench '*'
fi
stage 'packages for other systems' tests/elsewhere.sh
# It is installed on this machine, and removed again: for that it must be root.
if ((EUID == 0)); then
    stage 'debian package' tests/package.sh
else
    echo '== debian package  not tried: that needs root'
fi
