//! Sets the version, with the commit that a release is built from, and on Windows compiles the program's resources
//! (icon, version, manifest).
//!
//! Nothing here is required: without git the version is the number alone, and without a resource compiler a Windows
//! program has no resources, with a warning.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let number = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // A debug build must not be rebuilt because of a commit.
    let is_release = env::var("PROFILE").as_deref() == Ok("release");
    let version = match commit().filter(|_| is_release) {
        Some(commit) => format!("{number} ({commit})"),
        None => number.clone(),
    };
    println!("cargo::rustc-env=PILOTLIGHT_VERSION={version}");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("windows") {
        resources(&number, &version);
    }
}

/// The commit of the sources, if they are a checkout of their own and not part of another one.
fn commit() -> Option<String> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git").arg("-C").arg(&root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // Each commit appends to the log of HEAD.
    let log = PathBuf::from(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    println!("cargo::rerun-if-changed={}", root.join(log).display());
    git(&["rev-parse", "--short=12", "HEAD"]).filter(|commit| !commit.is_empty())
}

/// Compiles packaging/windows/pilotlight.rc.in, with the version filled in, into the programs.
fn resources(number: &str, version: &str) {
    let (Some(root), Some(out)) = (env::var_os("CARGO_MANIFEST_DIR"), env::var_os("OUT_DIR")) else { return };
    let (root, out) = (PathBuf::from(root), PathBuf::from(out));
    let template = root.join("packaging/windows/pilotlight.rc.in");
    let manifest = root.join("packaging/windows/pilotlight.manifest");
    let icon = root.join("assets/icon/pilotlight.ico");
    for file in [&template, &manifest, &icon] {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    // The numeric file version has four parts; a suffix after a hyphen is not part of it.
    let mut parts: Vec<_> = number.split(['.', '-']).map_while(|part| part.parse::<u16>().ok()).take(4).collect();
    parts.resize(4, 0);
    let parts = parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let path = |path: &Path| path.display().to_string().replace('\\', "/");
    let written = std::fs::read_to_string(&template).and_then(|text| {
        let text = text.replace("@NUMBER@", &parts).replace("@VERSION@", version);
        let text = text.replace("@ICON@", &path(&icon)).replace("@MANIFEST@", &path(&manifest));
        let script = out.join("pilotlight.rc");
        std::fs::write(&script, text).map(|()| script)
    });
    let compiled = written.map_err(|error| error.to_string()).and_then(|script| compile(&script, &out));
    if let Err(error) = compiled {
        println!("cargo::warning=the program has no icon, version and manifest: {error}");
    }
}

#[cfg(windows)]
fn compile(script: &Path, _out: &Path) -> Result<(), String> {
    embed_resource::compile(script, embed_resource::NONE).manifest_required().map_err(|error| error.to_string())
}

/// Cross-compiles with mingw's resource compiler. For the MSVC target this does nothing: without Microsoft's linker
/// that target can only be checked here, not linked.
#[cfg(not(windows))]
fn compile(script: &Path, out: &Path) -> Result<(), String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() != Ok("gnu") {
        return Ok(());
    }
    let (compiler, object) = (format!("{arch}-w64-mingw32-windres"), out.join("resources.o"));
    let mut command = Command::new(&compiler);
    command.arg("--input").arg(script).arg("--output").arg(&object).args(["--output-format=coff", "--codepage=65001"]);
    match command.status() {
        Ok(status) if status.success() => {
            println!("cargo::rustc-link-arg-bins={}", object.display());
            Ok(())
        }
        Ok(status) => Err(format!("{compiler} failed with {status}")),
        Err(error) => Err(format!("{compiler} cannot be started: {error}")),
    }
}
