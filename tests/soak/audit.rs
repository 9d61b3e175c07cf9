//! Counts what was done to sessions to make an order harmful, and records the harm that must never happen.

use crate::support::home::Folder;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

/// The number of actions by name, and the harm that was seen, of which none is allowed.
#[derive(Default)]
pub(crate) struct Audit(Mutex<Record>);

#[derive(Default)]
struct Record {
    counts: BTreeMap<String, usize>,
    harm: Vec<String>,
}

impl Audit {
    /// Counts one more action or observation.
    pub(crate) fn count(&self, what: impl Into<String>) {
        *self.0.lock().unwrap().counts.entry(what.into()).or_default() += 1;
    }

    /// How often this was counted.
    pub(crate) fn total(&self, what: &str) -> usize {
        self.0.lock().unwrap().counts.get(what).copied().unwrap_or_default()
    }

    /// Records `harm` with the state that `dump` describes, unless `ok`.
    pub(crate) fn require(&self, ok: bool, harm: &str, dump: impl FnOnce() -> String) {
        self.count("checks");
        if !ok {
            let harm = format!("{harm}\n{}", dump());
            println!("HARM: {harm}");
            self.0.lock().unwrap().harm.push(harm);
        }
    }

    /// Requires that the log is one chain of one owner at a time, and that each prompt was sent once, or at most twice if
    /// it is `twice`.
    pub(crate) fn check_log(&self, folder: &Folder, twice: Option<&str>) {
        self.check(folder, folder.fault(), twice);
    }

    /// The same of a session whose servers are killed, each before the next begins: Copilot takes the lock of one that was
    /// killed for another's that is in use, once its id has been given to another process.
    pub(crate) fn check_log_of_killed(&self, folder: &Folder) {
        self.check(folder, folder.broken_chain(), None);
    }

    fn check(&self, folder: &Folder, fault: Option<&'static str>, twice: Option<&str>) {
        self.require(fault.is_none(), fault.unwrap_or_default(), || folder.dump());
        let mut prompts = BTreeMap::<String, usize>::new();
        for event in folder.events().iter().filter(|event| event["type"] == "user.message") {
            *prompts.entry(event["data"]["content"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        let sent_twice = |(words, times): (&String, &usize)| *times > 1 + usize::from(Some(&**words) == twice);
        self.require(!prompts.iter().any(sent_twice), "a prompt was sent twice", || folder.dump());
    }

    /// All harm that was seen.
    pub(crate) fn harm(&self) -> Vec<String> {
        self.0.lock().unwrap().harm.clone()
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.0.lock().unwrap();
        let counts: Vec<_> = record.counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
        write!(f, "harm seen: {}; {}", record.harm.len(), counts.join(", "))
    }
}

#[test]
fn a_prompt_that_is_twice_in_a_log_is_harm() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder { path: scratch.path().to_owned() };
    let line = |id: u32, words: &str| {
        let event = serde_json::json!({"type": "user.message", "id": id.to_string(), "data": {"content": words},
            "parentId": (id - 1).to_string()});
        format!("{event}\n")
    };
    std::fs::write(folder.log(), [line(1, "a"), line(2, "b"), line(3, "a")].concat()).unwrap();
    let audit = Audit::default();
    audit.check_log(&folder, Some("a"));
    assert_eq!(audit.harm().len(), 0, "{:?}", audit.harm());
    audit.check_log(&folder, None);
    audit.check_log(&folder, Some("b"));
    assert_eq!((audit.harm().len(), audit.total("checks")), (2, 6));
    // Two writers continue from the same event.
    std::fs::write(
        folder.log(),
        [line(1, "a"), line(2, "b"), line(2, "c").replace("\"id\":\"2\"", "\"id\":\"3\"")].concat(),
    )
    .unwrap();
    audit.check_log(&folder, None);
    assert_eq!(audit.harm().len(), 3);
}
