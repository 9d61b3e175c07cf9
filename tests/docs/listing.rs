//! The tests that there are: what the test programs of the workspace list.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A test.
pub(crate) struct Test {
    /// The file that its program begins with: `crates/core/src/lib.rs`, `tests/e2e.rs`.
    pub(crate) root: PathBuf,
    /// Its path there: `fleet::row::tests::an_old_row_is_dropped`.
    path: String,
}

impl Test {
    /// Its own name.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or_default()
    }

    /// Whether it is in this file, or in a module that stands there.
    pub(crate) fn is_in(&self, file: &str) -> bool {
        let file = Path::new(file);
        let Ok(below) = file.strip_prefix(self.root.parent().unwrap()) else { return false };
        let module = if below.ends_with("mod.rs") { below.parent().unwrap().into() } else { below.with_extension("") };
        file == self.root || Path::new(&self.path.replace("::", "/")).starts_with(module)
    }

    /// The numbers of the cases in its name: `case_74_and_107g_what_cannot`, `case_163_case_164_every_click`.
    pub(crate) fn cases(&self) -> Vec<&str> {
        cases(self.name())
    }
}

pub(crate) fn cases(name: &str) -> Vec<&str> {
    let (mut found, mut is_listing) = (Vec::new(), false);
    for word in name.split('_') {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if is_listing && is_number {
            found.push(word);
        }
        is_listing = matches!(word, "case" | "cases") || is_listing && (is_number || word == "and");
    }
    found
}

/// All tests, also those that are ignored. Builds what is not built yet of the test programs; after a build of the
/// workspace, nothing.
pub(crate) fn tests() -> &'static [Test] {
    static TESTS: OnceLock<Vec<Test>> = OnceLock::new();
    TESTS.get_or_init(|| programs().into_iter().flat_map(|(root, program)| listed(&root, &program)).collect())
}

/// The test programs, each with the file that it begins with.
fn programs() -> Vec<(PathBuf, PathBuf)> {
    // `cargo test` alone leaves out e2e.
    [&[][..], &["--test", "e2e"]].into_iter().flat_map(built).collect()
}

/// The test programs that `cargo test` builds with these arguments.
fn built(which: &[&str]) -> Vec<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["test", "--workspace", "--no-run", "--locked", "--quiet", "--message-format=json"]).args(which);
    let built = cargo.current_dir(root).stderr(Stdio::inherit()).output().unwrap();
    assert!(built.status.success(), "the test programs cannot be built");
    let messages = built.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let program = |message: serde_json::Value| {
        let (begins, program) = (message["target"]["src_path"].as_str()?, message["executable"].as_str()?);
        let is_test = message["profile"]["test"] == true;
        is_test.then(|| (Path::new(begins).strip_prefix(root).unwrap().to_owned(), program.into()))
    };
    messages.filter_map(program).collect()
}

fn listed(root: &Path, program: &Path) -> Vec<Test> {
    // With its standard input and output closed to it, a program that is no test program does nothing either.
    let output = Command::new(program).args(["--list", "--format", "terse"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{} does not list its tests", program.display());
    let text = String::from_utf8(output.stdout).unwrap();
    let paths = text.lines().filter_map(|line| line.strip_suffix(": test"));
    paths.map(|path| Test { root: root.into(), path: path.into() }).collect()
}

#[test]
fn tests_are_found_by_file_and_name() {
    let here = tests().iter().find(|test| test.name() == "tests_are_found_by_file_and_name").unwrap();
    assert!(here.is_in("tests/docs/listing.rs") && here.is_in("tests/docs.rs"));
    assert!(!here.is_in("tests/docs/claims.rs") && !here.is_in("src/docs/listing.rs"));
    let inline = tests().iter().find(|test| test.is_in("crates/core/src/hash.rs")).unwrap();
    assert_eq!(inline.root, Path::new("crates/core/src/lib.rs"));
    assert!(tests().iter().any(|test| test.is_in("tests/tail/mod.rs")));
    assert_eq!(cases("case_74_and_107g_what_cannot_in_3_steps"), ["74", "107g"]);
    assert_eq!(cases("case_163_case_164_every_click"), ["163", "164"]);
    assert_eq!(cases("in_each_case_it_waits_45_s"), [""; 0]);
}
