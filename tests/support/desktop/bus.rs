//! A private session bus: its own address and rules, and no services that the bus starts but those of the test.

use crate::support::{SOON, block_on, wait_until};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A private bus. It ends with the test.
pub(crate) struct Bus {
    scratch: TempDir,
    daemon: Option<Child>,
    /// The bus of the display that `tests/visible/popup.sh` has started.
    display: Option<String>,
}

impl Bus {
    /// Starts a bus.
    pub(crate) fn start() -> Self {
        let mut bus = Self::address_only();
        if std::env::var_os("PILOTLIGHT_TEST_DISPLAY_SCRIPT").is_some() {
            bus.display = std::env::var("DBUS_SESSION_BUS_ADDRESS").ok();
        } else {
            bus.begin();
        }
        bus
    }

    /// A bus that another process has started.
    pub(crate) fn at(address: String) -> Self {
        let mut bus = Self::address_only();
        bus.display = Some(address);
        bus
    }

    /// An address that no bus listens on yet.
    pub(crate) fn address_only() -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-bus-").tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("services")).unwrap();
        let rules = format!(
            r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={}</listen>
  <servicedir>{}</servicedir>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>"#,
            scratch.path().join("bus").display(),
            scratch.path().join("services").display()
        );
        std::fs::write(scratch.path().join("rules.conf"), rules).unwrap();
        Self { scratch, daemon: None, display: None }
    }

    /// Starts the daemon at the same address as before.
    pub(crate) fn begin(&mut self) {
        let rules = format!("--config-file={}", self.scratch.path().join("rules.conf").display());
        let mut command = Command::new("dbus-daemon");
        command.args(["--nofork", "--nopidfile", "--nosyslog", &rules]).stdin(Stdio::null()).stderr(Stdio::null());
        self.daemon = Some(command.spawn().expect("dbus-daemon is needed for the tests of the desktop"));
        wait_until(SOON, "the bus answers", String::new, || UnixStream::connect(self.socket()).ok());
    }

    /// Has the bus start this program for whoever calls this name, which the program need not take.
    pub(crate) fn add_service(&self, name: &str, program: &Path) {
        let file = format!("[D-BUS Service]\nName={name}\nExec={}\n", program.display());
        std::fs::write(self.scratch.path().join("services").join(format!("{name}.service")), file).unwrap();
        block_on(async { zbus::fdo::DBusProxy::new(&self.connect().await).await.unwrap().reload_config().await })
            .unwrap();
    }

    /// Kills the daemon, and with it every connection.
    pub(crate) fn end(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
        }
        let _ = std::fs::remove_file(self.socket()); // a killed daemon leaves it behind
    }

    /// The path of its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.scratch.path().join("bus")
    }

    /// The value of `DBUS_SESSION_BUS_ADDRESS`.
    pub(crate) fn address(&self) -> String {
        self.display.clone().unwrap_or_else(|| format!("unix:path={}", self.socket().display()))
    }

    /// The names that are owned on it.
    pub(crate) fn names(&self) -> Vec<String> {
        block_on(async {
            let bus = zbus::fdo::DBusProxy::new(&self.connect().await).await.unwrap();
            bus.list_names().await.unwrap().into_iter().map(|name| name.to_string()).collect()
        })
    }

    /// Connects the test to it.
    pub(crate) async fn connect(&self) -> zbus::Connection {
        zbus::connection::Builder::address(&*self.address()).unwrap().build().await.unwrap()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.end();
    }
}
