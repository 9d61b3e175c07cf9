//! Wayland compositors that list their windows, with processes and focus, on a socket of their own: sway (`sway-ipc(7)`)
//! and Hyprland (its wiki, "IPC"). Others tell programs nothing about each other's windows.

use super::on_screen::OnScreen;
use crate::system::deadline::run_within;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes of an answer that are read.
const ANSWER_MAX: u32 = 4 * 1024 * 1024;
/// What each message of sway's begins with, followed by the length of its text and its type, in native byte order.
const MAGIC: &[u8; 6] = b"i3-ipc";
/// The type of a message that asks sway for its tree.
const GET_TREE: u32 = 4;

/// A compositor, by its socket.
#[derive(Clone, Debug)]
pub(super) enum Compositor {
    Sway(PathBuf),
    Hyprland(PathBuf),
}

/// A node of sway's tree.
#[derive(Deserialize)]
struct Node {
    /// Only windows have one.
    pid: Option<u32>,
    /// Its number in X11, if it is a window of Xwayland.
    window: Option<u32>,
    focused: bool,
    nodes: Vec<Node>,
    floating_nodes: Vec<Node>,
}

/// A window of Hyprland. Its active window has no fields if there is none.
#[derive(Deserialize)]
struct Client {
    #[serde(default)]
    address: String,
    #[serde(default)]
    pid: i64,
}

impl Compositor {
    /// The one that we run in.
    pub(super) fn ours() -> Option<Self> {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let sway = path("SWAYSOCK").map(Self::Sway);
        sway.or_else(|| {
            let folder = path("XDG_RUNTIME_DIR")?.join("hypr").join(path("HYPRLAND_INSTANCE_SIGNATURE")?);
            Some(Self::Hyprland(folder.join(".socket.sock")))
        })
    }

    /// Its windows. `None` if it does not answer.
    pub(super) fn on_screen(&self) -> Option<Vec<OnScreen>> {
        let compositor = self.clone();
        let work = move || match compositor {
            Self::Sway(socket) => sway(&socket),
            Self::Hyprland(socket) => hyprland(&socket),
        };
        run_within("compositor", TIMEOUT, work).ok()??.ok()
    }
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

fn sway(socket: &Path) -> io::Result<Vec<OnScreen>> {
    let mut stream = connect(socket)?;
    stream.write_all(&[MAGIC, &0u32.to_ne_bytes()[..], &GET_TREE.to_ne_bytes()].concat())?;
    let (mut magic, mut length, mut kind) = ([0; 6], [0; 4], [0; 4]);
    stream.read_exact(&mut magic)?;
    stream.read_exact(&mut length)?;
    stream.read_exact(&mut kind)?;
    let length = u32::from_ne_bytes(length);
    if &magic != MAGIC || length > ANSWER_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut windows = Vec::new();
    parse::<Node>(stream.take(length.into()))?.collect(&mut windows);
    Ok(windows)
}

impl Node {
    fn collect(&self, windows: &mut Vec<OnScreen>) {
        windows.extend(self.pid.map(|pid| OnScreen { pid, x11: self.window, has_focus: self.focused }));
        for node in self.nodes.iter().chain(&self.floating_nodes) {
            node.collect(windows);
        }
    }
}

fn hyprland(socket: &Path) -> io::Result<Vec<OnScreen>> {
    let active: Client = ask_hyprland(socket, "j/activewindow")?;
    let clients: Vec<Client> = ask_hyprland(socket, "j/clients")?;
    let on_screen = |client: Client| {
        let has_focus = client.address == active.address;
        Some(OnScreen { pid: client.pid.try_into().ok()?, x11: None, has_focus })
    };
    Ok(clients.into_iter().filter_map(on_screen).collect())
}

/// Asks Hyprland, which closes the connection after its answer.
fn ask_hyprland<T: DeserializeOwned>(socket: &Path, question: &str) -> io::Result<T> {
    let mut stream = connect(socket)?;
    stream.write_all(question.as_bytes())?;
    parse(stream.take(ANSWER_MAX.into()))
}

fn parse<T: DeserializeOwned>(mut answer: impl Read) -> io::Result<T> {
    let mut text = Vec::new();
    answer.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::time::Instant;

    /// Answers each connection with the next of these, once it has received the question.
    fn serve(socket: &Path, answers: Vec<(Vec<u8>, Vec<u8>)>) -> std::thread::JoinHandle<()> {
        let listener = UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            for (question, answer) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = vec![0; question.len()];
                stream.read_exact(&mut asked).unwrap();
                assert_eq!(asked, question);
                stream.write_all(&answer).unwrap();
            }
        })
    }

    /// As sway-ipc(7) and the answers of sway 1.7 have it.
    fn of_sway(text: &str) -> (Vec<u8>, Vec<u8>) {
        let message = |length: usize, text: &str| {
            let length = u32::try_from(length).unwrap().to_ne_bytes();
            [&b"i3-ipc"[..], &length, &4u32.to_ne_bytes(), text.as_bytes()].concat()
        };
        (message(0, ""), message(text.len(), text))
    }

    #[test]
    fn case_337_the_windows_of_sway_are_read() {
        let scratch = tempfile::tempdir().unwrap();
        let socket = scratch.path().join("sway");
        let node = |more: &str, nodes: &str, floating: &str| {
            format!(r#"{{"id": 1, "name": null, {more}, "nodes": [{nodes}], "floating_nodes": [{floating}]}}"#)
        };
        let windows = [
            node(r#""focused": false, "pid": 10, "window": null, "app_id": "foot""#, "", ""),
            node(r#""focused": true, "pid": 11, "window": 4194317"#, "", ""),
        ];
        let workspace = node(r#""focused": false"#, &windows[0], &windows[1]);
        let tree = node(r#""focused": false"#, &node(r#""focused": false"#, &workspace, ""), "");
        let served = serve(&socket, vec![of_sway(&tree)]);
        let windows = Compositor::Sway(socket).on_screen().unwrap();
        assert_eq!(
            windows,
            [
                OnScreen { pid: 10, x11: None, has_focus: false },
                OnScreen { pid: 11, x11: Some(4_194_317), has_focus: true },
            ]
        );
        served.join().unwrap();
    }

    #[test]
    fn case_337_the_windows_of_hyprland_are_read() {
        let scratch = tempfile::tempdir().unwrap();
        let clients = r#"[{"address": "0x5", "pid": 10, "class": "foot"}, {"address": "0x6", "pid": 10}, {"address": "0x7", "pid": -1}]"#;
        for (active, focus) in
            [(r#"{"address": "0x6", "pid": 10, "class": "foot"}"#, [false, true]), ("{}", [false; 2])]
        {
            let socket = scratch.path().join(active.len().to_string());
            let answers = [("j/activewindow", active), ("j/clients", clients)];
            let served = serve(&socket, answers.map(|(question, answer)| (question.into(), answer.into())).to_vec());
            let windows = Compositor::Hyprland(socket).on_screen().unwrap();
            assert_eq!(windows, focus.map(|has_focus| OnScreen { pid: 10, x11: None, has_focus }));
            served.join().unwrap();
        }
    }

    #[test]
    fn case_337_a_compositor_that_says_nothing_or_nonsense_is_not_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        let (question, huge) = of_sway("");
        let huge = [&huge[..6], &u32::MAX.to_ne_bytes(), &huge[10..]].concat();
        for (name, answer) in [("empty", Vec::new()), ("huge", huge), ("text", b"i3-ipc is not spoken here".to_vec())] {
            let served = serve(&path(name), vec![(question.clone(), answer)]);
            assert_eq!(Compositor::Sway(path(name)).on_screen(), None, "{name}");
            served.join().unwrap();
        }
        let _silent = UnixListener::bind(path("silent")).unwrap();
        let begun = Instant::now();
        for compositor in [Compositor::Sway, Compositor::Hyprland] {
            assert_eq!(compositor(path("silent")).on_screen(), None);
            assert_eq!(compositor(path("absent")).on_screen(), None);
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
