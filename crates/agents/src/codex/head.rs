//! The beginning of a thread's log: whose it is, its first prompt, and its branch.

use super::{log_format, store};
use pilotlight_core::event::{Body, Event};
use pilotlight_core::scan::{Malformed, Scan, Text, keys};
use pilotlight_core::text::{NAME_MAX, is_uuid, plain};
use pilotlight_core::time::Time;
use pilotlight_system::packed;
use pilotlight_system::plain_file::{self, Links};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// How much of the first line is read, in bytes. What is needed stands before the instructions, which are long.
const HEAD_MAX: u64 = 8 << 10;
/// How much is read to find the first prompt, in bytes. 20 to 40 kB of instructions and context precede it.
const OPENING_MAX: u64 = 192 << 10;

/// How much of a log's end tells whether its last turn is over, in bytes. Seen: 3 kB between its last two events.
const END_MAX: u64 = 64 << 10;

/// What the first line of a log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The thread that it belongs to: its own id or, of a sub-agent, that of the root. Where the log does not name that, of
    /// the thread that started it.
    pub(super) session: Box<str>,
    /// The folder it works in.
    pub(super) cwd: Option<Box<str>>,
    /// When it was created.
    pub(super) created: Option<Time>,
    /// Which of Codex's programs started it: `codex-tui`, `codex_exec`...
    pub(super) originator: Box<str>,
    /// The version that wrote it.
    pub(super) version: Box<str>,
    /// What a sub-agent is called, else its kind. Empty: neither is told.
    pub(super) nickname: Box<str>,
}

/// Whether the last turn of a log was left open, by its end. In doubt, it was.
pub(super) fn is_left_open(log: &Path) -> bool {
    let read = || {
        let (mut file, meta) = plain_file::open(log, Links::Refused).ok()?;
        file.seek(SeekFrom::Start(meta.len().saturating_sub(END_MAX))).ok()?;
        let mut end = Vec::new();
        file.take(END_MAX).read_to_end(&mut end).ok()?;
        Some((end, meta.len() <= END_MAX))
    };
    let Some((end, is_all)) = read() else { return true };
    let mut lines = end.split(|byte| *byte == b'\n').rev();
    lines.find_map(log_format::opens_turn).unwrap_or(!is_all)
}

impl Head {
    /// Reads the first line. `None` if it is not one of Codex's.
    pub(super) fn read(log: &Path) -> Option<Self> {
        let bytes = beginning(log, HEAD_MAX)?;
        match Self::parse(&bytes) {
            Some((head, true)) => Some(head),
            // In another order of its fields, the instructions come before what is needed.
            _ if bytes.len() as u64 == HEAD_MAX => Self::parse(&beginning(log, OPENING_MAX)?).map(|(head, _)| head),
            read => read.map(|(head, _)| head),
        }
    }

    /// Parses the first line, or its beginning. Also tells whether that is all that is needed.
    fn parse(bytes: &[u8]) -> Option<(Self, bool)> {
        let (mut kind, mut head, mut id) = (None, Self::default(), None);
        let mut spawned = Spawned::default();
        // The line is cut in the middle of a value. The fields before it are kept.
        keys(bytes, |key, scan| {
            match key {
                b"type" => kind = scan.text()?,
                b"payload" => scan.object(|key, scan| {
                    match key {
                        b"id" => id = scan.text()?,
                        b"source" => spawned.read_source(scan)?,
                        b"parent_thread_id" | b"agent_nickname" | b"agent_role" => spawned.read(key, scan)?,
                        b"session_id" => head.session = text(scan.text()?),
                        b"cwd" => head.cwd = scan.text()?.map(|cwd| cwd.read(4096).into()),
                        b"timestamp" => head.created = scan.text()?.and_then(|at| Time::parse(at.0)),
                        b"cli_version" => head.version = text(scan.text()?),
                        b"originator" => head.originator = text(scan.text()?),
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                _ => scan.skip()?,
            }
            Ok(())
        });
        if head.session.is_empty() {
            head.session = text(spawned.parent.or(id));
        }
        head.nickname = text(spawned.nickname.or(spawned.role));
        let is_all = id.is_some() && head.cwd.is_some() && !head.originator.is_empty() && !head.version.is_empty();
        (kind == Some(Text(b"session_meta")) && is_uuid(&head.session)).then_some((head, is_all))
    }

    /// Whether the log with this head is a sub-agent's.
    pub(super) fn is_part_of_another(&self, id: &str) -> bool {
        *self.session != *id
    }
}

/// What is said of a sub-agent: beside the thread's id, in its source, or in both.
#[derive(Default)]
struct Spawned<'a> {
    /// The thread that started it.
    parent: Option<Text<'a>>,
    nickname: Option<Text<'a>>,
    role: Option<Text<'a>>,
}

impl<'a> Spawned<'a> {
    fn read(&mut self, key: &[u8], scan: &mut Scan<'a>) -> Result<(), Malformed> {
        let field = match key {
            b"parent_thread_id" => &mut self.parent,
            b"agent_nickname" => &mut self.nickname,
            b"agent_role" => &mut self.role,
            _ => return scan.skip(),
        };
        let told = scan.text()?.filter(|told| !told.0.is_empty());
        *field = field.or(told);
        Ok(())
    }

    fn read_source(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| match key {
            b"subagent" => scan.object_or_skip(|key, scan| match key {
                b"thread_spawn" => scan.object_or_skip(|key, scan| self.read(key, scan)),
                _ => scan.skip(),
            }),
            _ => scan.skip(),
        })
    }
}

/// The first bytes of a log, unpacked if it is packed.
fn beginning(log: &Path, most: u64) -> Option<Vec<u8>> {
    let (file, _) = plain_file::open(log, Links::Refused).ok()?;
    let mut bytes = Vec::new();
    if store::is_packed(log) {
        let text = packed::unpack(BufReader::new(file)).ok()?;
        // What comes before a fault counts.
        let _ = text.take(most).read_to_end(&mut bytes);
    } else {
        file.take(most).read_to_end(&mut bytes).ok()?;
    }
    Some(bytes)
}

fn text(text: Option<Text<'_>>) -> Box<str> {
    text.map(|text| text.read(NAME_MAX).into()).unwrap_or_default()
}

/// What stands behind the instructions, which are long.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// The first prompt, on one line.
    pub(super) prompt: Option<Box<str>>,
    /// The branch that its folder had then.
    pub(super) branch: Option<Box<str>>,
}

impl Opening {
    /// Reads it, as far as it is written.
    pub(super) fn read(log: &Path) -> Self {
        // What fails to be read says nothing.
        Self::parse(&beginning(log, OPENING_MAX).unwrap_or_default())
    }

    fn parse(bytes: &[u8]) -> Self {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let branch = match lines.next().map(log_format::parse) {
            Some(Ok(Event { body: Body::Start(info), .. })) => info.branch,
            _ => None,
        };
        let branch = branch.map(|branch| plain(&branch.read(NAME_MAX), NAME_MAX));
        let prompt = lines.find_map(log_format::prompt_of).map(|prompt| plain(&prompt, NAME_MAX));
        Self { prompt: prompt.filter(|prompt| !prompt.is_empty()), branch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_whose_log_it_is_even_if_it_is_cut() {
        let line = r#"{"timestamp":"2026-11-21T22:59:11.972Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01a20055-bf5d-7303-bbfc-244d3f6cc309","id":"01a20055-c9b5-7f71-99fc-2aefc3a8ecb5","timestamp":"2026-11-21T22:59:11.928Z","cwd":"/lab/a \"b\"","originator":"codex-tui","base_instructions":{"text":"xxxx"#;
        let (head, _) = Head::parse(line.as_bytes()).unwrap();
        assert_eq!((head.cwd.as_deref(), &*head.originator), (Some("/lab/a \"b\""), "codex-tui"));
        assert!(head.is_part_of_another("01a20055-c9b5-7f71-99fc-2aefc3a8ecb5"));
        assert!(!head.is_part_of_another("01a20055-bf5d-7303-bbfc-244d3f6cc309"));
        // An older release has no `session_id`.
        let older = line.replace(r#""session_id":"01a20055-bf5d-7303-bbfc-244d3f6cc309","#, "");
        assert!(!Head::parse(older.as_bytes()).unwrap().0.is_part_of_another("01a20055-c9b5-7f71-99fc-2aefc3a8ecb5"));
        for broken in ["", "{", "null", &line[1..], &line.replace("session_meta", "event_msg"), &line[..80]] {
            assert_eq!(Head::parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn case_831_a_sub_agent_is_called_by_its_name_or_else_its_kind() {
        let line = r#"{"type":"session_meta","payload":{"id":"01a20055-bf5d-7303-bbfc-244d3f6cc309","originator":"codex-tui"}}"#;
        let named = |fields: &str| {
            let line = line.replace(r#""originator""#, &format!(r#"{fields},"originator""#));
            Head::parse(line.as_bytes()).unwrap().0.nickname
        };
        let spawned = |fields: &str| named(&format!(r#""source":{{"subagent":{{"thread_spawn":{{{fields}}}}}}}"#));
        assert_eq!(&*named(r#""agent_nickname":"Kepler","agent_role":"explorer""#), "Kepler");
        assert_eq!(&*spawned(r#""depth":1,"agent_path":null,"agent_nickname":"Kepler","agent_role":null"#), "Kepler");
        assert_eq!(&*spawned(r#""agent_nickname":null,"agent_role":"explorer""#), "explorer");
        assert_eq!(&*named(r#""source":"vscode","agent_nickname":7"#), "");
    }

    #[test]
    fn the_branch_and_the_first_prompt_stand_behind_the_instructions() {
        let long = "x".repeat(20_000);
        let first = format!(
            r#"{{"timestamp":"2026-11-21T22:59:11.972Z","type":"session_meta","payload":{{"id":"a","base_instructions":{{"text":"{long}"}},"git":{{"commit_hash":"c","branch":"topic"}}}}}}"#
        );
        let item = |kind: &str, text: &str| {
            format!(
                r#"{{"timestamp":"2026-11-21T22:59:12.000Z","type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"{kind}","content":[{{"type":"text","text":"{text}"}}]}}}}}}"#
            )
        };
        let log = [&*first, &item("AgentMessage", "no"), &item("UserMessage", "Fix\\nit"), &item("UserMessage", "2")];
        let opening = Opening::parse(log.join("\n").as_bytes());
        assert_eq!((opening.branch.as_deref(), opening.prompt.as_deref()), (Some("topic"), Some("Fix it")));
        let cut = Opening::parse(&first.as_bytes()[..9000]);
        assert_eq!((cut.branch, cut.prompt), (None, None));
    }
}
