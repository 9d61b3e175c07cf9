//! What was done to sessions on purpose to make a click harm, how often, and what came of it that must never come.

use crate::support::home::Folder;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

/// Deeds by name, and the harm that was seen. Of that, none is allowed.
#[derive(Default)]
pub(crate) struct Deeds(Mutex<Done>);

#[derive(Default)]
struct Done {
    counts: BTreeMap<String, usize>,
    harm: Vec<String>,
}

impl Deeds {
    /// Something was done, or seen, once more.
    pub(crate) fn count(&self, what: impl Into<String>) {
        *self.0.lock().unwrap().counts.entry(what.into()).or_default() += 1;
    }

    /// How often.
    pub(crate) fn counted(&self, what: &str) -> usize {
        self.0.lock().unwrap().counts.get(what).copied().unwrap_or_default()
    }

    /// This must be so. Where it is not, `dump` says what was.
    pub(crate) fn must(&self, so: bool, what: &str, dump: impl FnOnce() -> String) {
        self.count("checks");
        if !so {
            let harm = format!("{what}\n{}", dump());
            println!("HARM: {harm}");
            self.0.lock().unwrap().harm.push(harm);
        }
    }

    /// The log has one writer after the other, and each of its prompts was sent once, but for `twice`, which was wanted so.
    pub(crate) fn look(&self, folder: &Folder, twice: Option<&str>) {
        let fault = folder.fault();
        self.must(fault.is_none(), fault.unwrap_or_default(), || folder.dump());
        let mut prompts = BTreeMap::<String, usize>::new();
        for event in folder.events().iter().filter(|event| event["type"] == "user.message") {
            *prompts.entry(event["data"]["content"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        let sent_twice = |(words, times): (&String, &usize)| *times > 1 + usize::from(Some(&**words) == twice);
        self.must(!prompts.iter().any(sent_twice), "a prompt was sent twice", || folder.dump());
    }

    /// All harm that was seen.
    pub(crate) fn harm(&self) -> Vec<String> {
        self.0.lock().unwrap().harm.clone()
    }
}

impl fmt::Display for Deeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = self.0.lock().unwrap();
        let counts: Vec<_> = done.counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
        write!(f, "harm seen: {}; {}", done.harm.len(), counts.join(", "))
    }
}

#[test]
fn a_prompt_that_stands_twice_in_a_log_is_harm() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder { path: scratch.path().to_owned() };
    let line = |id: u32, words: &str| {
        let event = serde_json::json!({"type": "user.message", "id": id.to_string(), "data": {"content": words},
            "parentId": (id - 1).to_string()});
        format!("{event}\n")
    };
    std::fs::write(folder.log(), [line(1, "a"), line(2, "b"), line(3, "a")].concat()).unwrap();
    let deeds = Deeds::default();
    deeds.look(&folder, Some("a"));
    assert_eq!(deeds.harm().len(), 0, "{:?}", deeds.harm());
    deeds.look(&folder, None);
    deeds.look(&folder, Some("b"));
    assert_eq!((deeds.harm().len(), deeds.counted("checks")), (2, 6));
    // Written by two: both go on from the same event.
    std::fs::write(
        folder.log(),
        [line(1, "a"), line(2, "b"), line(2, "c").replace("\"id\":\"2\"", "\"id\":\"3\"")].concat(),
    )
    .unwrap();
    deeds.look(&folder, None);
    assert_eq!(deeds.harm().len(), 3);
}
