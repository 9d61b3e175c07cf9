//! A question to the user in the session's own words, as its log has it (a tool that asks) or a server tells it.

use super::text::plain;
use serde::{Deserialize, Serialize};

/// Maximum length of the question, in characters.
const TEXT_MAX: usize = 500;
/// Maximum number of choices.
const CHOICES_MAX: usize = 20;
/// Maximum length of a choice, in characters.
const CHOICE_MAX: usize = 100;

/// A question, safe to display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The id to answer it by. `None` if it cannot be answered from here.
    pub id: Option<Box<str>>,
    /// The question, on one line.
    pub text: Box<str>,
    /// The answers to choose from. Empty if any text will do, or if it asks for several things at once.
    pub choices: Vec<Box<str>>,
}

impl Question {
    /// A question on another machine.
    pub(super) fn told(id: Option<Box<str>>, text: &str, choices: &[Box<str>]) -> Self {
        let choices = choices.iter().take(CHOICES_MAX).map(|choice| plain(choice, CHOICE_MAX)).collect();
        Self { id: id.filter(|id| id.len() <= TEXT_MAX), text: plain(text, TEXT_MAX), choices }
    }

    /// A question that an agent asks. `None` if it asks nothing.
    pub fn asked(text: &str, choices: &[String]) -> Option<Self> {
        let text = plain(text, TEXT_MAX);
        let choices = choices.iter().take(CHOICES_MAX).map(|choice| plain(choice, CHOICE_MAX));
        (!text.is_empty()).then(|| Self {
            id: None,
            text,
            choices: choices.filter(|choice| !choice.is_empty()).collect(),
        })
    }

    /// The same question, answered by this id with one of these choices.
    pub fn answered_by<'a>(self, id: &str, choices: impl Iterator<Item = &'a str>) -> Self {
        let choices = choices.take(CHOICES_MAX).map(|choice| plain(choice, CHOICE_MAX));
        Self { id: Some(id.into()), choices: choices.collect(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_questions_are_cut_and_empty_ones_are_none() {
        assert_eq!((Question::asked("", &["red".into()]), Question::asked("\u{200b} ", &[])), (None, None));
        let long = Question::asked(&"x".repeat(10_000), &vec!["y".repeat(1000); 100]).unwrap();
        assert_eq!((long.text.chars().count(), long.choices.len()), (TEXT_MAX, CHOICES_MAX));
        assert!(long.choices.iter().all(|choice| choice.chars().count() == CHOICE_MAX));
    }

    #[test]
    fn other_choices_can_take_the_place_of_those_in_the_log() {
        let asked = Question::asked("Which color?", &["red".into()]).unwrap();
        let other = asked.clone().answered_by("r", ["light\nblue", "green"].into_iter());
        assert_eq!((&other.text, other.choices), (&asked.text, vec!["light blue".into(), "green".into()]));
        assert_eq!((asked.id.as_deref(), other.id.as_deref()), (None, Some("r")));
        let long = "x".repeat(1000);
        let many = asked.answered_by("r", [&*long; 100].into_iter());
        assert_eq!(many.choices.len(), CHOICES_MAX);
        assert!(many.choices.iter().all(|choice| choice.chars().count() == CHOICE_MAX));
    }
}
