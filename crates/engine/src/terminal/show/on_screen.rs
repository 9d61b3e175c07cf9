//! The windows on a screen, and which of them a process is in.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

/// A window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnScreen {
    /// The process that created it.
    pub(super) pid: u32,
    /// Its number, if it is one of X11's.
    pub(super) x11: Option<u32>,
    pub(super) has_focus: bool,
}

/// The window that is brought to the front.
pub(super) struct Picked {
    /// Its place in the list.
    pub(super) index: usize,
    /// In words.
    pub(super) name: String,
}

/// The window of the first process in the chain that has one: the last in the list, which on X11 is the topmost. `hint` is
/// the window that its terminal announced; it decides if a process has several.
pub(super) fn pick(windows: &[OnScreen], chain: &[u32], hint: Option<u32>) -> Option<Picked> {
    let is_hinted = |window: &OnScreen| chain.contains(&window.pid) && window.x11.is_some() && window.x11 == hint;
    let hinted = windows.iter().position(is_hinted);
    let nearest = || chain.iter().find_map(|pid| windows.iter().rposition(|window| window.pid == *pid));
    let index = hinted.or_else(nearest)?;
    let pid = windows[index].pid;
    let program = name_of(pid).unwrap_or_else(|| "a program".into());
    let name = match windows.iter().filter(|window| window.pid == pid).count() {
        several @ 2.. if hinted.is_none() => {
            format!("the topmost of {several} windows of {program} (process {pid}; it may not be the right one)")
        }
        _ => format!("the window of {program} (process {pid})"),
    };
    Some(Picked { index, name })
}

/// The name of a process, which Linux cuts to 15 bytes.
fn name_of(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim().to_owned()).filter(|name| !name.is_empty())
}

/// Whether the window of the first process in the chain that has one has the focus. `hint` is the window that the
/// terminal announced to its programs. If the process has several windows and none is announced, nobody can tell which.
pub(super) fn is_in_focus(windows: &[OnScreen], chain: &[u32], hint: Option<u32>) -> bool {
    let of = |pid: &u32| windows.iter().filter(|window| window.pid == *pid).collect::<Vec<_>>();
    match &chain.iter().map(of).find(|of| !of.is_empty()).unwrap_or_default()[..] {
        [window] => window.has_focus,
        several => several.iter().any(|window| window.has_focus && window.x11.is_some() && window.x11 == hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_336_only_the_nearest_window_that_is_certain_counts() {
        let window = |pid, number, has_focus| OnScreen { pid, x11: Some(number), has_focus };
        let chain = [9, 8, 5, 1];
        for (windows, hint, has_focus) in [
            (vec![window(5, 50, true), window(7, 70, false)], None, true),
            (vec![window(5, 50, true), window(7, 70, false)], Some(70), true),
            (vec![window(5, 50, false), window(7, 70, true)], None, false),
            // A terminal that was started from another one.
            (vec![window(8, 80, false), window(5, 50, true)], Some(50), false),
            // One process with several windows.
            (vec![window(5, 50, true), window(5, 51, false)], None, false),
            (vec![window(5, 50, true), window(5, 51, false)], Some(50), true),
            (vec![window(5, 50, true), window(5, 51, false)], Some(51), false),
            (vec![OnScreen { x11: None, ..window(5, 0, true) }, window(5, 51, false)], None, false),
            (vec![OnScreen { x11: None, ..window(5, 0, true) }], None, true),
            (vec![], None, false),
        ] {
            assert_eq!(is_in_focus(&windows, &chain, hint), has_focus, "{windows:?} {hint:?}");
        }
    }
}
