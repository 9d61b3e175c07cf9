//! The rules that Claude Code suggests with a request: what "always" would allow from now on, in words.
//!
//! They are passed back as they came. Only what is understood whole is offered: a rule that reads otherwise than it works
//! would be granted for good.

use pilotlight_core::confusable::find_confusable;
use serde::Deserialize;
use serde_json::Value;

/// The most suggestions, and rules of one. Real requests have one or two.
const MOST: usize = 8;
/// The longest words in which they are shown, in characters.
const WORDS_MAX: usize = 300;

/// Rules that Claude Code suggests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rules {
    /// What they allow, and where they go.
    pub(super) words: Box<str>,
    /// As Claude Code sent them.
    pub(super) updates: Value,
}

/// A suggestion.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Update {
    AddRules { rules: Vec<Rule>, behavior: String, destination: String },
    SetMode { mode: String, destination: String },
    AddDirectories { directories: Vec<String>, destination: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    tool_name: String,
    #[serde(default)]
    rule_content: Option<String>,
}

impl Rules {
    /// Reads the suggestions. `None` if there are none, or one of them is not understood.
    pub(super) fn read(suggestions: &Value) -> Option<Self> {
        let updates: Vec<Update> = serde_json::from_value(suggestions.clone()).ok()?;
        if updates.is_empty() || updates.len() > MOST {
            return None;
        }
        let words = updates.iter().map(Update::words).collect::<Option<Vec<_>>>()?.join("; ");
        let is_shown = words.chars().count() <= WORDS_MAX && find_confusable(&words).is_none();
        is_shown.then(|| Self { words: words.into(), updates: suggestions.clone() })
    }
}

impl Update {
    fn words(&self) -> Option<String> {
        match self {
            Self::AddRules { rules, behavior, destination } => {
                let is_known = behavior == "allow" && !rules.is_empty() && rules.len() <= MOST;
                let rules: Vec<_> = rules.iter().map(Rule::words).collect();
                is_known.then(|| Some(format!("{} ({})", rules.join(", "), place(destination)?))).flatten()
            }
            Self::SetMode { mode, destination } if mode == "acceptEdits" => {
                Some(format!("every edit of files ({})", place(destination)?))
            }
            Self::SetMode { .. } => None,
            Self::AddDirectories { directories, destination } => {
                let is_known = !directories.is_empty() && directories.len() <= MOST;
                is_known
                    .then(|| Some(format!("the folder {} ({})", directories.join(", "), place(destination)?)))
                    .flatten()
            }
        }
    }
}

impl Rule {
    /// The rule as it stands in the settings, or in words where it allows everything.
    fn words(&self) -> String {
        let Self { tool_name, rule_content } = self;
        match rule_content.as_deref().map(str::trim) {
            None | Some("" | "*" | ":*" | "**") if tool_name == "Bash" => "every command".to_owned(),
            None | Some("" | "*" | ":*" | "**") => format!("every use of {tool_name}"),
            Some(_) => format!("{tool_name}({})", rule_content.as_deref().unwrap_or_default()),
        }
    }
}

/// Where a rule goes.
fn place(destination: &str) -> Option<&'static str> {
    Some(match destination {
        "session" => "this session",
        "localSettings" => ".claude/settings.local.json",
        "projectSettings" => ".claude/settings.json of the project",
        "userSettings" => "your own settings.json",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(suggestions: &Value) -> Option<String> {
        Rules::read(suggestions).map(|rules| rules.words.into())
    }

    #[test]
    fn case_745_rules_are_shown_as_they_are_and_everything_as_everything() {
        let rule = |content: Value| {
            json!([{"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": content}], "behavior": "allow",
                "destination": "localSettings"}])
        };
        assert_eq!(words(&rule(json!("npm run *"))).unwrap(), "Bash(npm run *) (.claude/settings.local.json)");
        for everything in [json!("*"), json!(""), json!(":*"), json!(" * "), json!(null)] {
            let shown = words(&rule(everything.clone())).unwrap();
            assert_eq!(shown, "every command (.claude/settings.local.json)", "{everything}");
        }
        let session = json!([{"type": "addDirectories", "directories": ["/p"], "destination": "session"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        assert_eq!(words(&session).unwrap(), "the folder /p (this session); every edit of files (this session)");
    }

    #[test]
    fn case_745_what_is_not_understood_whole_is_not_offered() {
        let rule = json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "ls"}], "behavior": "allow",
            "destination": "session"});
        assert!(words(&json!([rule])).is_some());
        let with = |key: &str, value: Value| {
            let mut other = rule.clone();
            other[key] = value;
            json!([other])
        };
        for other in [
            json!(null),
            json!([]),
            json!({"type": "setMode"}),
            json!([{"type": "setMode", "mode": "bypassPermissions", "destination": "session"}]),
            with("behavior", json!("deny")),
            with("destination", json!("elsewhere")),
            with("rules", json!([])),
            with("new", json!(1)),
            with("rules", json!([{"toolName": "Bash", "ruleContent": "a\u{202e}b"}])),
            with("rules", json!([{"toolName": "Bash", "ruleContent": "x".repeat(1000)}])),
            Value::Array(vec![rule.clone(); 9]),
        ] {
            assert_eq!(words(&other), None, "{other}");
        }
    }
}
