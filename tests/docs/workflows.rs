//! What the workflows repeat of other files agrees with these.

use std::collections::BTreeSet;
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

/// What follows this text in a file, up to the end of the line.
fn after(path: &str, beginning: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (_, rest) = text.split_once(beginning).unwrap_or_else(|| panic!("{path} has no {beginning:?}"));
    rest.lines().next().unwrap_or_default().to_owned()
}

/// The archives by the lines that make them, not by Cargo.toml. That each has the program where Cargo.toml says is for
/// packaging/check.py, which looks into them.
#[test]
fn binstall_fetches_the_archives_that_a_release_has() {
    let release = ".github/workflows/release.yml";
    let mut made = BTreeSet::new();
    assert_eq!(after(release, "target=$(uname -m)"), "-unknown-linux-musl");
    assert_eq!(after("packaging/linux/archive.sh", "name=pilotlight-"), "$version-$2");
    assert_eq!(after("packaging/release.sh", "--best >\"$made/$1"), ".tar.gz\"");
    for runner in after(release, "os: [").trim_end_matches(']').split(", ") {
        let machine = if runner.ends_with("-arm") { "aarch64" } else { "x86_64" };
        made.insert(format!("pilotlight-VERSION-{machine}-unknown-linux-musl.tar.gz"));
    }
    let mac = after(release, "ditto -c -k --keepParent Pilotlight.app \"");
    made.insert(mac.trim_end_matches('"').replace("$VERSION", "VERSION"));
    let windows = after("packaging/windows/pack.py", "name = f\"").replace("{version}", "VERSION");
    let windows = windows
        .trim_end_matches('"')
        .replace("{TARGET}", after("packaging/windows/pack.py", "TARGET = ").trim_matches('"'));
    assert!(after("packaging/windows/pack.py", "\"archive\" / f\"{name}").starts_with(".zip\""));
    made.insert(format!("{windows}.zip"));

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest: toml::Table = toml::from_str(&fs::read_to_string(root.join("Cargo.toml")).unwrap()).unwrap();
    let binstall = &manifest["package"]["metadata"]["binstall"];
    let tag = after(release, "gh release create \"").split('"').next().unwrap().replace("$VERSION", "VERSION");
    let checked = fs::read_to_string(root.join("packaging/check.py")).unwrap();
    let targets = checked.split_once("TARGETS = [").unwrap().1.split_once(']').unwrap().0;
    let mut fetched = BTreeSet::new();
    for target in targets.split('"').skip(1).step_by(2) {
        let told = binstall["overrides"].get(target).unwrap_or(binstall);
        let url = told["pkg-url"].as_str().unwrap().replace("{ version }", "VERSION").replace("{ target }", target);
        let name = url.strip_prefix(&format!("{{ repo }}/releases/download/{tag}/")).unwrap_or_else(|| panic!("{url}"));
        let format = told.get("pkg-fmt").unwrap_or(&binstall["pkg-fmt"]).as_str().unwrap();
        assert!(name.ends_with(if format == "tgz" { ".tar.gz" } else { ".zip" }), "{name} is no {format}");
        fetched.insert(name.to_owned());
    }
    assert_eq!(fetched, made);
    let overrides = binstall["overrides"].as_table().unwrap();
    assert!(
        overrides.keys().all(|target| targets.contains(&format!("\"{target}\""))),
        "check.py checks no other: {overrides:?}"
    );
}
