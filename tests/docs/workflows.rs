//! What the workflows repeat of other files agrees with these.

use std::fs;
use std::path::Path;

/// The text in quotes after this beginning of a line.
fn quoted<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(beginning)?.trim().strip_prefix('"')?.strip_suffix('"'))
}

/// The jobs of a workflow, each with its name.
fn jobs(workflow: &str) -> Vec<String> {
    let mut jobs: Vec<String> = Vec::new();
    for line in workflow.split_once("\njobs:\n").unwrap().1.lines() {
        // What belongs to a job is indented by more than its name.
        if line.starts_with("  ") && !line[2..].starts_with([' ', '#']) {
            jobs.push(String::new());
        }
        jobs.last_mut().unwrap().extend([line, "\n"]);
    }
    jobs
}

#[test]
fn every_job_that_compiles_installs_the_rust_of_the_tests_first() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pinned = fs::read_to_string(root.join("tests/rust-toolchain.toml")).unwrap();
    let pinned = quoted(&pinned, "channel =").unwrap();
    let mut compiling = 0;
    for entry in fs::read_dir(root.join(".github/workflows")).unwrap() {
        let workflow = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert_eq!(quoted(&workflow, "RUSTUP_TOOLCHAIN:"), Some(pinned), "{workflow}");
        for job in jobs(&workflow) {
            let compiles = ["cargo ", "rustup target", "tests/", "/build.sh", "/program.sh", "/sbom.sh"];
            let Some(first) = compiles.iter().filter_map(|what| job.find(what)).min() else { continue };
            compiling += 1;
            let installed = job.find("rustup toolchain install ${{ env.RUSTUP_TOOLCHAIN }} ");
            // The job with other compilers names them in each command.
            let named = job.matches("cargo \"+$compiler\" ").count();
            let is_named = named > 0 && named == job.matches("cargo ").count();
            assert!(is_named || installed.is_some_and(|at| at < first), "{job}");
        }
    }
    assert!(compiling >= 9, "{compiling} jobs that compile were found");
}
