//! The coding agents whose sessions are watched: GitHub Copilot, Claude Code, Codex, and any other by its own hook, of which
//! [`opencode`] can be answered, too.
//!
//! An agent is an [`adapter::Adapter`]: where its sessions are, how one is read, who runs it, and how it is resumed. Nothing
//! outside of an agent's folder knows it; all that is known of an agent is in [`adapter::ADAPTERS`]. The five main types:
//!
//! - [`adapter::Adapter`]: an agent. Those that are only shown need two of its methods.
//! - [`home::Home`]: one home of an agent. It lists the sessions in it, and makes their readers.
//! - [`reader::SessionReader`]: reads one session, and writes what it observes into a
//!   [`pilotlight_core::session::Observed`]. The verdict is left to the core.
//! - [`control::Control`]: how the sessions of an agent are acted on, over [`channel::Channel`]s: a server, a bridge into a
//!   terminal, a daemon.
//! - [`evidence::Evidence`]: what shows whose process may be signalled.
//!
//! Shared by the agents:
//!
//! - [`homes`] finds their homes, [`scanner`] the sessions that processes have open ([`openings`]), `runners` the live
//!   processes of agents with what each shows of its home, [`programs`] the files that are opened when an agent is started.
//! - [`shown`] has what all agents have in common that are only shown.
//! - [`tail`] follows a growing log in any [`tail::LogFormat`]. [`listing`] is what a list of sessions found, [`listing_cache`] whether
//!   another would find the same, `walk` finds sessions that are files in shared folders.
//! - [`bridge`] installs the bridges into terminals, with the agents' own commands where they have some. `hooks` is what is
//!   the same about hooks that wait for an answer, `questions` about questions with choices.
//! - [`callers`] knows which agent started a process, by the `fingerprint`
//!   of each, so that no tool of an agent answers for the user.
//!
//! Files of agents are only read: nothing is written into their homes, and none of their locks is taken. The one exception is
//! the file of opencode's bridge, after its user's consent.
//!
//! Begin with `adapter.rs`, then `codex/`, the smallest whole agent.
//!
//! # To add an agent
//!
//! `sundial.rs`, a made-up agent that is only shown, is all that it takes. In this order:
//!
//! 1. A file `<name>.rs` with a `const PROFILE: Profile`: what is the same about all its homes. Start from `Profile::SHOWN`
//!    and `Names::new`, and give the six fields that the comment on `SHOWN` names. A home is a folder, `~/<home>` or what the
//!    variable `home_variable` names. `is_home` is asked only of other folders, which `--home` or the settings name; other
//!    agents have a folder `sessions` as well, so look for what only yours has. `sessions` is the folder in it that has the
//!    sessions, and `WatchPlan::files` says how deep a session's file lies there, and how its name gives the session's id
//!    (`core::text::is_uuid` checks one).
//! 2. A type that implements [`adapter::Adapter`]: `profile`, and `open`, which returns [`shown::reader`]. That reads either a
//!    log of lines, by a [`tail::LogFormat`], or a file that is written anew each time, by a function. Both turn what the agent
//!    wrote into [`pilotlight_core::event::Event`]s; `Event::of`, `Body::prompt`, `Body::tool` and `Body::tool_done` are short
//!    for the usual ones, `core/scan.rs` has `Text` and `Malformed`, and reads JSON without allocating. A turn begins with a
//!    prompt and is over with a `Body::Answer`, `Body::TurnOver` or `Body::Shutdown`; what is not known is left out. Of a tool
//!    whose end is not logged, give its name as its call: it counts as open until the turn ends. What the first lines say
//!    (folder, title) belongs in `about`, and is a `Body::Aside` as an event, because reading backwards stops at the last prompt.
//!    `LogFormat::of` makes a log format: whether a log begins as this agent's does, how a line is parsed, and whether a line is a
//!    prompt, where reading backwards stops. The adapter also returns it from `log_format`, or `pilotlight replay` reads such a
//!    log as Copilot's. `shown/tests.rs` has an agent with a log of lines.
//! 3. `mod <name>;` here, and in `adapter.rs` its entry in [`adapter::ADAPTERS`], anywhere after the first (a home that two
//!    agents recognise is the later one's). Then
//!    `cargo run -- --home FOLDER status --all` shows the sessions of a home, and `explain ID` why one has its status.
//! 4. Who runs a session. As long as nothing tells, its log alone is judged, and a session that is silent is soon over. Where
//!    each live process has a file that is named by its process id and contains the session's, `logs` of the watch plan and
//!    [`shown::scanner`] are enough; files that dead processes left tell nothing there. An agent that tells in another way wraps
//!    the reader that [`shown::reader`] returns in a [`reader::SessionReader`] of its own: call its `refresh`, set
//!    `observed.owner` and `observed.holders`, then call its `read_history` if `observed.unread` is set and
//!    `reading.is_history(observed)` says otherwise. `Owner::Gone` in an open turn is crashed, and ended after it;
//!    `Owner::Never` is judged by silence alone. Read the small files of agents by `plain_file::open`: a pipe would block.
//!
//! Three rules for who runs a session. Compare the process's start with the time of the file that names it
//! (`process::SLACK`), because ids are reused. The engine waits for the pids in [`reader::SessionReader::pids`] to exit; the
//! reader keeps when that was, or its next read loses it. A folder with a file for each process is the `logs` of the watch
//! plan, one with a file for each open session its `locks`; a file beside the session's own is `beside` of `Layout::Files`.
//!
//! What may be done with a session is in the other methods of `Adapter`. An agent that cannot be acted on says why in
//! `Observed::allows`. One whose processes may be signalled gives an [`evidence::Evidence`], one that can be told something
//! a [`control::Control`] with what implements [`channel::Channel`]. Its `fingerprint` keeps its tools from answering for
//! the user. Nothing outside of its folder changes.
//!
//! These name agents for people: README.md, SECURITY.md (whose tools answer nothing), `docs/agents.md`, `docs/privacy.md`,
//! `docs/faq.md`, `docs/hooks.md`, `docs/cli.md`, `src/cli/help.rs`, `packaging/linux/pilotlight.metainfo.xml.in` and
//! `packaging/windows/winget/`.

// Dead code is only reported on Linux, where the tests run. The other systems do not use all that is compiled for them.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]
// What tests write is their own.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod adapter;
mod asked;
pub mod bridge;
pub mod callers;
pub mod channel;
pub mod claude_code;
pub mod codex;
#[cfg(target_os = "linux")]
pub mod containers;
pub mod control;
pub mod copilot;
pub mod evidence;
mod fingerprint;
pub mod home;
pub mod homes;
pub mod hooks;
pub mod listing;
pub mod listing_cache;
pub mod opencode;
pub mod openings;
mod profile;
mod program_file;
pub mod program_version;
pub mod programs;
mod questions;
pub mod reader;
pub mod reading;
pub mod reported;
pub mod runners;
pub mod scanner;
pub mod shown;
mod starting;
#[cfg(any(test, feature = "testing"))]
pub mod sundial;
pub mod tail;
mod walk;
