//! Finds the Copilot CLI, to run a server of our own.
//!
//! Takes the program named in the config, else `copilot` on the search path, else the one where installers put it. A
//! tray started by the desktop often has a shorter search path than the user's shell, without `node`: where npm's
//! loader is found, the native program behind it is taken instead. A candidate must identify itself as Copilot by its
//! version, because other programs are called `copilot` too.

use crate::program_version::printed_version;
use pilotlight_system::paths;
use pilotlight_system::plain_file::{self, Links};
use std::env::consts::{ARCH, EXE_SUFFIX, OS};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a program may take to print its version where a user waits for the result. Copilot takes a tenth of a
/// second, and a few seconds on its very first start.
pub const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for a resume. A machine under load takes many times as long, and a slow resume is better than a refused
/// one.
pub const VERSION_TIMEOUT_LONG: Duration = Duration::from_secs(30);
/// How the output of `--version` begins, in every release that speaks our protocol.
const VERSION_PREFIX: &str = "GitHub Copilot CLI ";
/// How much of an npm package's manifest is read, in bytes. Copilot's has about 1,000.
const MANIFEST_MAX: u64 = 64 << 10;

/// Finds the Copilot CLI. Where the user's settings name a program (`config`), nothing else is tried. Each candidate
/// has the time `within` to print its version. The error says what was tried, and what to do.
pub async fn find_program(config: Option<&Path>, within: Duration) -> Result<PathBuf, String> {
    find(config, within, Source::Program).await.map(|(program, _)| program)
}

/// Finds the Copilot CLI and its version, for a report. A program that npm installed is not started for that: its first
/// start unpacks 235 MB into its cache.
pub async fn find_version(config: Option<&Path>, within: Duration) -> Result<(PathBuf, String), String> {
    find(config, within, Source::Package).await
}

/// What tells a program's version, and thereby that it is the Copilot CLI.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The program itself.
    Program,
    /// The npm package that it is in; without one, the program itself.
    Package,
}

impl Source {
    async fn version(self, program: &Path, within: Duration) -> Result<String, String> {
        match self {
            Self::Package if let Some(version) = packaged_version(program) => Ok(version),
            Self::Program | Self::Package => query_version(program, within).await,
        }
    }
}

/// Finds the Copilot CLI and its version.
async fn find(config: Option<&Path>, within: Duration, source: Source) -> Result<(PathBuf, String), String> {
    if let Some(named) = config {
        let refused = |why| {
            format!("{}, which the settings name as the Copilot CLI, {why}; correct the settings", named.display())
        };
        return source.version(named, within).await.map(|version| (named.to_owned(), version)).map_err(refused);
    }
    let home = paths::user_home();
    let found =
        candidates(std::env::var_os("PATH").as_deref(), home.as_deref(), std::env::var_os("APPDATA").as_deref());
    let mut tried = Vec::new();
    for program in found {
        match source.version(&program, within).await {
            Ok(version) => return Ok((program, version)),
            Err(why) => tried.push(format!("{} {why}", program.display())),
        }
    }
    let tried = if tried.is_empty() { String::new() } else { format!(" ({})", tried.join("; ")) };
    Err(format!(
        "no Copilot CLI was found on PATH or where npm installs it{tried}: install it, or name it in the settings"
    ))
}

/// The existing programs to try, in order.
fn candidates(path: Option<&OsStr>, home: Option<&Path>, app_data: Option<&OsStr>) -> Vec<PathBuf> {
    let name = format!("copilot{EXE_SUFFIX}");
    let mut found: Vec<PathBuf> = Vec::new();
    let folders = path.map(std::env::split_paths).into_iter().flatten().filter(|folder| folder.is_absolute());
    let installed =
        [home.map(|home| home.join(".local/bin")), Some("/usr/local/bin".into()), Some("/opt/homebrew/bin".into())];
    for folder in folders.chain(installed.into_iter().flatten()) {
        let program = folder.join(&name);
        if program.is_file() {
            found.push(behind_loader(&program).unwrap_or(program));
        }
        // npm's own wrapper there is a shell script, which we do not start.
        found.extend(native(&folder.join("node_modules/@github")));
    }
    let mut modules: Vec<PathBuf> =
        ["/usr/local/lib/node_modules", "/usr/lib/node_modules", "/opt/homebrew/lib/node_modules"]
            .map(PathBuf::from)
            .into();
    modules.extend(app_data.map(|folder| Path::new(folder).join("npm/node_modules")));
    if let Some(home) = home {
        modules.extend([".npm-global/lib/node_modules", ".local/lib/node_modules"].map(|folder| home.join(folder)));
        let mut versions: Vec<PathBuf> = std::fs::read_dir(home.join(".nvm/versions/node"))
            .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path().join("lib/node_modules"))).collect())
            .unwrap_or_default();
        versions.sort();
        modules.extend(versions.into_iter().rev());
    }
    found.extend(modules.iter().filter_map(|folder| native(&folder.join("@github"))));
    let mut seen = std::collections::HashSet::new();
    found.retain(|program| seen.insert(program.clone()));
    found
}

/// The native program behind npm's loader, where `program` is a link to the loader.
fn behind_loader(program: &Path) -> Option<PathBuf> {
    let loader = program.canonicalize().ok()?;
    let package = loader.parent()?;
    let is_loader = loader.extension() == Some(OsStr::new("js")) && package.ends_with("@github/copilot");
    is_loader.then(|| native(package.parent()?))?
}

/// The native program in `.../node_modules/@github`: next to the main package, or inside it.
fn native(scope: &Path) -> Option<PathBuf> {
    let platform = match OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let arch = if ARCH == "aarch64" { "arm64" } else { "x64" };
    let inside = scope.join("copilot/node_modules/@github");
    [scope, &inside]
        .map(|scope| scope.join(format!("copilot-{platform}-{arch}")).join(format!("copilot{EXE_SUFFIX}")))
        .into_iter()
        .find(|program| program.is_file())
}

/// The version of a program that npm installed, from the package that it is in.
fn packaged_version(program: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let manifest = program.canonicalize().ok()?.with_file_name("package.json");
    let (file, _) = plain_file::open(&manifest, Links::Followed).ok()?;
    let mut text = Vec::new();
    file.take(MANIFEST_MAX).read_to_end(&mut text).ok()?;
    let package: Package = serde_json::from_slice(&text).ok()?;
    package.name.starts_with("@github/copilot").then_some(package.version)
}

/// Asks a program for its version. The error says what is wrong with the program.
async fn query_version(program: &Path, within: Duration) -> Result<String, String> {
    let printed = printed_version(program, within).await?;
    let version = printed.trim_start().strip_prefix(VERSION_PREFIX).map(|version| version.trim().to_owned());
    version.ok_or_else(|| "is not the GitHub Copilot CLI, by what its `--version` prints".to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use pilotlight_system::process::testing::write_program;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn run<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    /// Writes an executable shell script.
    fn program(path: &Path, script: &str) -> PathBuf {
        write_program(path, format!("#!/bin/sh\n{script}\n").as_bytes());
        path.to_owned()
    }

    #[test]
    fn the_program_named_in_the_config_must_be_copilot() {
        let scratch = tempfile::tempdir().unwrap();
        let find = |script: &str| {
            let named = program(&scratch.path().join("copilot"), script);
            run(find_program(Some(&named), VERSION_TIMEOUT))
        };
        assert_eq!(
            find("[ \"$1\" = --version ] && echo 'GitHub Copilot CLI 1.0.102.'").unwrap(),
            scratch.path().join("copilot")
        );
        // Another product's command is also called `copilot`.
        let other = find("echo 'copilot version: v1.34.0'").unwrap_err();
        assert!(other.contains("is not the GitHub Copilot CLI") && other.contains("correct the settings"), "{other}");
        assert!(find("exit 1").unwrap_err().contains("is not the GitHub Copilot CLI"));
        assert!(find("yes x").unwrap_err().contains("is not the GitHub Copilot CLI"), "endless output is cut off");
        let missing = run(find_program(Some(&scratch.path().join("none")), VERSION_TIMEOUT)).unwrap_err();
        assert!(missing.contains("does not start"), "{missing}");
    }

    /// Case 233: its first start unpacks hundreds of megabytes.
    #[test]
    fn case_233_a_program_from_npm_is_not_started_to_learn_its_version() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("@github/copilot-linux-x64");
        let named = program(&folder.join("copilot"), "touch \"$0.started\"; echo 'GitHub Copilot CLI 9.9.9.'");
        let linked = scratch.path().join("copilot");
        symlink(&named, &linked).unwrap();
        let version = |path: &Path| run(find_version(Some(path), VERSION_TIMEOUT)).unwrap().1;
        let manifest = |text: &str| fs::write(folder.join("package.json"), text).unwrap();
        manifest(r#"{"name": "@github/copilot-linux-x64", "version": "1.0.102"}"#);
        assert_eq!((version(&named), version(&linked)), ("1.0.102".into(), "1.0.102".into()));
        assert!(!folder.join("copilot.started").exists(), "it was started");
        // A program of another package, or of none, is asked.
        manifest(r#"{"name": "copilot", "version": "1.0.0"}"#);
        assert_eq!(version(&named), "9.9.9.");
        assert!(folder.join("copilot.started").exists());
    }

    #[test]
    fn the_native_program_is_taken_instead_of_npms_loader() {
        let scratch = tempfile::tempdir().unwrap();
        let scope = scratch.path().join("lib/node_modules/@github");
        let platform = if cfg!(target_os = "macos") { "darwin" } else { OS };
        let arch = if ARCH == "aarch64" { "arm64" } else { "x64" };
        let loader = program(&scope.join("copilot/npm-loader.js"), "");
        let path = scratch.path().join("bin");
        fs::create_dir_all(&path).unwrap();
        symlink(&loader, path.join("copilot")).unwrap();
        let first = |path: &Path| candidates(Some(path.as_os_str()), None, None).into_iter().next().unwrap();
        assert_eq!(first(&path), path.join("copilot"), "without a native program, the loader may work");
        let inside =
            program(&scope.join(format!("copilot/node_modules/@github/copilot-{platform}-{arch}/copilot")), "");
        assert_eq!(first(&path), inside.canonicalize().unwrap());
        let beside = program(&scope.join(format!("copilot-{platform}-{arch}/copilot")), "");
        assert_eq!(first(&path), beside.canonicalize().unwrap());
        let home = scratch.path().join("home");
        let nvm = program(
            &home
                .join(format!(".nvm/versions/node/v22.1.0/lib/node_modules/@github/copilot-{platform}-{arch}/copilot")),
            "",
        );
        assert!(candidates(None, Some(&home), None).contains(&nvm));
    }
}
