//! Wayland compositors that list their windows, with processes and focus, on a socket of their own, and focus one when
//! they are asked to: sway (`sway-ipc(7)`) and Hyprland (its wiki, "IPC"). Others tell programs nothing about each other's
//! windows.

use super::on_screen::{OnScreen, pick};
use pilotlight_system::deadline::run_within;
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
/// The types of messages that have sway carry out a command, and that ask it for its tree.
const RUN_COMMAND: u32 = 0;
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
    id: u64,
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

/// A window, and the command that focuses it.
type Window = (OnScreen, String);

/// What sway says of a command.
#[derive(Deserialize)]
struct Outcome {
    success: bool,
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
        let windows = run_within("compositor", TIMEOUT, move || compositor.windows()).ok()??.ok()?;
        Some(windows.into_iter().map(|(window, _)| window).collect())
    }

    /// Focuses a window of the first process in the chain that has one, and returns a description of it. `hint` is the X11
    /// window that the terminal announced to its programs; it decides if a process has several.
    ///
    /// # Errors
    /// In words for the user.
    pub(super) fn raise(&self, chain: Vec<u32>, hint: Option<u32>) -> Result<String, String> {
        let compositor = self.clone();
        let raised = run_within("compositor", TIMEOUT, move || compositor.raise_now(&chain, hint));
        match raised.and_then(|raised| raised.ok_or_else(|| io::Error::from(io::ErrorKind::TimedOut))?) {
            Ok(outcome) => outcome,
            Err(error) => Err(format!("the compositor cannot be asked: {error}")),
        }
    }

    fn raise_now(&self, chain: &[u32], hint: Option<u32>) -> io::Result<Result<String, String>> {
        let (windows, commands): (Vec<_>, Vec<_>) = self.windows()?.into_iter().unzip();
        let Some(picked) = pick(&windows, chain, hint) else {
            return Ok(Err("no window here belongs to it or to what started it".into()));
        };
        let is_done = self.run(&commands[picked.index])?;
        let undone = || format!("the compositor did not bring {} to the front", picked.name);
        Ok(if is_done { Ok(picked.name) } else { Err(undone()) })
    }

    fn windows(&self) -> io::Result<Vec<Window>> {
        match self {
            Self::Sway(socket) => sway(socket),
            Self::Hyprland(socket) => hyprland(socket),
        }
    }

    /// Whether it carried out a command.
    fn run(&self, command: &str) -> io::Result<bool> {
        match self {
            Self::Sway(socket) => {
                let outcomes: Vec<Outcome> = ask_sway(socket, RUN_COMMAND, command)?;
                Ok(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.success))
            }
            Self::Hyprland(socket) => Ok(ask_hyprland(socket, command)?.trim_ascii() == b"ok"),
        }
    }
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

fn sway(socket: &Path) -> io::Result<Vec<Window>> {
    let mut windows = Vec::new();
    ask_sway::<Node>(socket, GET_TREE, "")?.collect(&mut windows);
    Ok(windows)
}

fn ask_sway<T: DeserializeOwned>(socket: &Path, kind: u32, text: &str) -> io::Result<T> {
    let mut stream = connect(socket)?;
    let length = u32::try_from(text.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&[MAGIC, &length.to_ne_bytes()[..], &kind.to_ne_bytes(), text.as_bytes()].concat())?;
    let (mut magic, mut length, mut kind) = ([0; 6], [0; 4], [0; 4]);
    stream.read_exact(&mut magic)?;
    stream.read_exact(&mut length)?;
    stream.read_exact(&mut kind)?;
    let length = u32::from_ne_bytes(length);
    if &magic != MAGIC || length > ANSWER_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(serde_json::from_slice(&read(stream.take(length.into()))?)?)
}

impl Node {
    fn collect(&self, windows: &mut Vec<Window>) {
        let window = self.pid.map(|pid| OnScreen { pid, x11: self.window, has_focus: self.focused });
        windows.extend(window.map(|window| (window, format!("[con_id={}] focus", self.id))));
        for node in self.nodes.iter().chain(&self.floating_nodes) {
            node.collect(windows);
        }
    }
}

fn hyprland(socket: &Path) -> io::Result<Vec<Window>> {
    let active: Client = serde_json::from_slice(&ask_hyprland(socket, "j/activewindow")?)?;
    let clients: Vec<Client> = serde_json::from_slice(&ask_hyprland(socket, "j/clients")?)?;
    let window = |client: Client| {
        let has_focus = client.address == active.address;
        let window = OnScreen { pid: client.pid.try_into().ok()?, x11: None, has_focus };
        Some((window, format!("dispatch focuswindow address:{}", client.address)))
    };
    Ok(clients.into_iter().filter_map(window).collect())
}

/// Asks Hyprland, which closes the connection after its answer.
fn ask_hyprland(socket: &Path, question: &str) -> io::Result<Vec<u8>> {
    let mut stream = connect(socket)?;
    stream.write_all(question.as_bytes())?;
    read(stream.take(ANSWER_MAX.into()))
}

fn read(mut answer: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    answer.read_to_end(&mut text)?;
    Ok(text)
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
    fn case_346_the_window_of_the_nearest_process_is_focused() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        let tree = r#"{"id": 1, "focused": false, "floating_nodes": [], "nodes": [
            {"id": 5, "focused": false, "pid": 10, "window": null, "nodes": [], "floating_nodes": []},
            {"id": 6, "focused": false, "pid": 11, "window": 60, "nodes": [], "floating_nodes": []},
            {"id": 7, "focused": true, "pid": 11, "window": 70, "nodes": [], "floating_nodes": []}]}"#;
        let command = "[con_id=6] focus";
        let message = |kind: u32, text: &str| {
            let length = u32::try_from(text.len()).unwrap().to_ne_bytes();
            [&b"i3-ipc"[..], &length, &kind.to_ne_bytes(), text.as_bytes()].concat()
        };
        for (outcome, is_done) in [(r#"[{"success": true}]"#, true), (r#"[{"success": false, "error": "no"}]"#, false)]
        {
            let socket = path(&format!("sway-{is_done}"));
            let answers = vec![of_sway(tree), (message(0, command), message(0, outcome))];
            let answers = answers.into_iter().map(|(_, answer)| answer).zip([message(4, ""), message(0, command)]);
            let served = serve(&socket, answers.map(|(answer, question)| (question, answer)).collect());
            let raised = Compositor::Sway(socket).raise(vec![9, 11, 10], Some(60));
            assert_eq!(raised.is_ok(), is_done, "{raised:?}");
            served.join().unwrap();
        }
        let clients = r#"[{"address": "0x5", "pid": 10}, {"address": "0x6", "pid": 11}]"#;
        let questions = ["j/activewindow", "j/clients", "dispatch focuswindow address:0x6"];
        let answers = questions.into_iter().zip(["{}", clients, "ok"]);
        let served = serve(&path("hypr"), answers.map(|(question, answer)| (question.into(), answer.into())).collect());
        let hyprland = Compositor::Hyprland(path("hypr"));
        assert!(hyprland.raise(vec![9, 11, 10], None).unwrap().ends_with("(process 11)"));
        served.join().unwrap();
        let why = hyprland.raise(vec![1], None).unwrap_err();
        assert!(why.contains("the compositor cannot be asked"), "{why}");
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
