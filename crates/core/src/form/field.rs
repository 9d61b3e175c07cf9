//! A form's field: its type, and parsing and validating values for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// The reason given for a format that is not understood.
pub(super) const UNKNOWN: &str = "it has a form that Pilotlight does not know";
/// The keys that a field of any type may have. An unknown key might restrict the valid values, so it is an error.
const ABOUT_KEYS: [&str; 4] = ["type", "title", "description", "default"];
/// The reason given for words that no choice has.
const NO_CHOICE: &str = "no choice reads like this";
/// The reason given for a field of an unsupported type.
const UNSUPPORTED: &str = "its form asks for more than choices, texts and numbers";

/// One field of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The key that its value is sent under.
    pub name: Box<str>,
    /// Its title and description.
    pub about: Vec<Box<str>>,
    /// Its type.
    pub takes: FieldType,
    /// It must not be left out.
    pub is_required: bool,
    /// Besides its choices, other words are valid: the terminal offers "Other" in a form of the agent's.
    #[serde(default)]
    pub takes_other: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldType {
    /// One of these.
    One(Vec<FieldOption>),
    /// Any number of these within the bounds, each at most once.
    Some {
        /// The choices.
        of: Vec<FieldOption>,
        /// Minimum number of choices.
        least: u64,
        /// Maximum number of choices.
        most: u64,
    },
    Text {
        /// Minimum length in characters.
        least: u64,
        /// Maximum length in characters.
        most: u64,
    },
    Number {
        /// Only whole numbers are valid.
        is_whole: bool,
        /// Minimum, inclusive.
        least: Option<Number>,
        /// Maximum, inclusive.
        most: Option<Number>,
    },
}

/// A choice that a field offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldOption {
    /// Its text, whole and unaltered.
    pub words: Box<str>,
    /// What its server is sent.
    pub value: Value,
}

impl Field {
    /// Reads a field from a form's schema.
    ///
    /// # Errors
    /// Why it cannot be filled in from here, without quoting the form.
    pub(super) fn read(name: &str, field: &Value, is_required: bool) -> Result<Self, &'static str> {
        let field = field.as_object().ok_or(UNKNOWN)?;
        let word = |key: &str| field.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let about = ["title", "description"].into_iter().filter_map(word).map(Into::into).collect();
        let (takes, keys): (FieldType, &[&str]) = match (field.get("type").and_then(Value::as_str), listed(field)?) {
            (Some("string") | None, Some(named)) => (FieldType::One(named), &["enum", "enumNames", "oneOf"]),
            (Some("string"), None) => {
                let (least, most) = bounds(field, "minLength", "maxLength")?;
                (FieldType::Text { least, most }, &["minLength", "maxLength"])
            }
            (Some("boolean"), None) => {
                let named = |(words, value): (&str, bool)| FieldOption { words: words.into(), value: value.into() };
                (FieldType::One([("Yes", true), ("No", false)].map(named).into()), &[])
            }
            (Some(kind @ ("number" | "integer")), None) => {
                let number = |key: &str| match field.get(key) {
                    None => Ok(None),
                    Some(Value::Number(number)) => Ok(Some(number.clone())),
                    Some(_) => Err(UNKNOWN),
                };
                let (least, most) = (number("minimum")?, number("maximum")?);
                (FieldType::Number { is_whole: kind == "integer", least, most }, &["minimum", "maximum"])
            }
            (Some("array"), None) => {
                let items = field.get("items").and_then(Value::as_object).ok_or(UNKNOWN)?;
                if items.keys().any(|key| !["type", "enum", "anyOf"].contains(&&**key))
                    || items.get("type").is_some_and(|kind| kind != "string")
                {
                    return Err(UNSUPPORTED);
                }
                let of = listed(items)?.ok_or(UNSUPPORTED)?;
                let (least, most) = bounds(field, "minItems", "maxItems")?;
                (FieldType::Some { of, least, most }, &["items", "minItems", "maxItems"])
            }
            _ => return Err(UNSUPPORTED),
        };
        if field.keys().any(|key| !ABOUT_KEYS.contains(&&**key) && !keys.contains(&&**key)) {
            return Err(UNSUPPORTED);
        }
        if matches!(&takes, FieldType::One(of) | FieldType::Some { of, .. } if of.is_empty()) {
            return Err(UNKNOWN);
        }
        Ok(Self { name: name.into(), about, takes, is_required, takes_other: false })
    }

    /// The choices that it offers.
    pub fn listed(&self) -> &[FieldOption] {
        match &self.takes {
            FieldType::One(of) | FieldType::Some { of, .. } => of,
            FieldType::Text { .. } | FieldType::Number { .. } => &[],
        }
    }

    /// All its texts that are shown.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let about = self.about.iter().map(|about| &**about);
        [&*self.name].into_iter().chain(about).chain(self.listed().iter().map(|named| &*named.words))
    }

    /// Describes what it takes.
    pub fn words(&self) -> String {
        let range = |least: Option<String>, most: Option<String>| match (least, most) {
            (None, None) => String::new(),
            (Some(least), None) => format!(", at least {least}"),
            (None, Some(most)) => format!(", at most {most}"),
            (Some(least), Some(most)) => format!(", {least} to {most}"),
        };
        let counts = |least: u64, most: u64| {
            range((least > 0).then(|| least.to_string()), (most < u64::MAX).then(|| most.to_string()))
        };
        let takes = match &self.takes {
            FieldType::One(_) if self.takes_other => "one of its choices, or other words".to_owned(),
            FieldType::One(_) => "one of its choices".to_owned(),
            FieldType::Some { least, most, .. } => format!("any of its choices{}", counts(*least, *most)),
            FieldType::Text { least: 0, most: u64::MAX } => "a text".to_owned(),
            FieldType::Text { least, most } => format!("a text{} characters", counts(*least, *most)),
            FieldType::Number { is_whole, least, most } => {
                let kind = if *is_whole { "a whole number" } else { "a number" };
                format!("{kind}{}", range(least.as_ref().map(Number::to_string), most.as_ref().map(Number::to_string)))
            }
        };
        format!("{takes}{}", if self.is_required { "" } else { "; may be left out" })
    }

    /// Parses what the user gave: one text, or one for each choice.
    ///
    /// # Errors
    /// Why it is not a valid value, without quoting the form.
    pub fn value(&self, given: &[&str]) -> Result<Value, &'static str> {
        let value = match (&self.takes, given) {
            (FieldType::Some { of, .. }, given) => {
                given.iter().map(|words| choice(of, words)?.ok_or(NO_CHOICE)).collect::<Result<_, _>>()?
            }
            (_, [] | [_, _, ..]) => return Err("it takes one value"),
            (FieldType::One(of), [words]) => match choice(of, words)? {
                None if self.takes_other => Value::from(*words),
                chosen => chosen.ok_or(NO_CHOICE)?,
            },
            (FieldType::Text { .. }, [text]) => Value::from(*text),
            (FieldType::Number { .. }, [text]) => Value::Number(text.trim().parse().map_err(|_| "it takes a number")?),
        };
        self.fits(&value).map(|()| value)
    }

    /// Checks that a value is valid, so that its server may be sent it.
    ///
    /// # Errors
    /// Why it is not, without quoting the form.
    pub(super) fn fits(&self, value: &Value) -> Result<(), &'static str> {
        let lists = |of: &[FieldOption], value: &Value| of.iter().any(|named| named.value == *value);
        match (&self.takes, value) {
            (FieldType::One(of), value) if lists(of, value) => Ok(()),
            (FieldType::One(_), Value::String(text)) if self.takes_other && !text.trim().is_empty() => Ok(()),
            (FieldType::One(_), _) => Err("it takes one of its choices"),
            (FieldType::Some { of, least, most }, Value::Array(values)) => {
                let is_new = |(index, value): (usize, &Value)| !values[..index].contains(value);
                if !values.iter().enumerate().all(|(index, value)| lists(of, value) && is_new((index, value))) {
                    return Err("it takes some of its choices, each once");
                }
                let count = values.len() as u64;
                if count < *least {
                    return Err("it takes more of its choices than that");
                }
                if count > *most { Err("it takes fewer of its choices than that") } else { Ok(()) }
            }
            (FieldType::Some { .. }, _) => Err("it takes some of its choices"),
            (FieldType::Text { .. }, Value::String(text)) if text.trim().is_empty() => {
                Err("an empty text is no answer")
            }
            (FieldType::Text { least, most }, Value::String(text)) => {
                let length = text.chars().count() as u64;
                if length < *least {
                    return Err("the text is shorter than its form allows");
                }
                if length > *most { Err("the text is longer than its form allows") } else { Ok(()) }
            }
            (FieldType::Text { .. }, _) => Err("it takes a text"),
            (FieldType::Number { is_whole, least, most }, Value::Number(number)) => {
                if *is_whole && number.as_i64().is_none() && number.as_u64().is_none() {
                    return Err("it takes a whole number");
                }
                let of = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
                let is_within = least.as_ref().is_none_or(|least| of(number) >= of(least))
                    && most.as_ref().is_none_or(|most| of(number) <= of(most));
                if is_within { Ok(()) } else { Err("its form does not allow this number") }
            }
            (FieldType::Number { .. }, _) => Err("it takes a number"),
        }
    }
}

/// Finds the choice with this text, this value, or this title, which is all that the terminal shows of it.
fn choice(of: &[FieldOption], words: &str) -> Result<Option<Value>, &'static str> {
    let reads = |named: &&FieldOption| match &named.value {
        Value::Bool(yes) => {
            [&*named.words, if *yes { "true" } else { "false" }].iter().any(|it| words.eq_ignore_ascii_case(it))
        }
        value => {
            let title = value.as_str().and_then(|value| named.words.strip_suffix(&format!(" ({value})")));
            *named.words == *words || value == words || title == Some(words)
        }
    };
    let mut read = of.iter().filter(reads);
    match (read.next(), read.next()) {
        (Some(_), Some(_)) => Err("two choices read like this"),
        (named, _) => Ok(named.map(|named| named.value.clone())),
    }
}

/// Reads a minimum and a maximum count.
fn bounds(field: &Map<String, Value>, least: &str, most: &str) -> Result<(u64, u64), &'static str> {
    let number = |key: &str, other| field.get(key).map_or(Some(other), Value::as_u64).ok_or(UNKNOWN);
    Ok((number(least, 0)?, number(most, u64::MAX)?))
}

/// The choices that a field offers, each with its text and value. `None`: it does not list any.
fn listed(field: &Map<String, Value>) -> Result<Option<Vec<FieldOption>>, &'static str> {
    let named = |name: Option<&str>, value: &str| {
        let words = match name {
            Some(name) if name != value => format!("{name} ({value})"),
            _ => value.to_owned(),
        };
        FieldOption { words: words.into(), value: value.into() }
    };
    match (field.get("enum"), field.get("oneOf").or(field.get("anyOf"))) {
        (None, None) => Ok(None),
        (Some(values), None) => {
            let values = strings(values).ok_or(UNKNOWN)?;
            let names = field.get("enumNames").map(|names| strings(names).ok_or(UNKNOWN)).transpose()?;
            if names.as_ref().is_some_and(|names| names.len() != values.len()) {
                return Err(UNKNOWN);
            }
            let name = |index: usize| names.as_ref().and_then(|names| names.get(index)).copied();
            Ok(Some(values.iter().enumerate().map(|(index, value)| named(name(index), value)).collect()))
        }
        (None, Some(values)) => {
            let one = |value: &Value| Some(named(value["title"].as_str(), value["const"].as_str()?));
            let all: Option<Vec<_>> = values.as_array().ok_or(UNKNOWN)?.iter().map(one).collect();
            all.map(Some).ok_or(UNKNOWN)
        }
        (Some(_), Some(_)) => Err(UNKNOWN),
    }
}

/// A list of texts. `None` if it is anything else.
pub(super) fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(field: &Value) -> Field {
        Field::read("db", field, true).unwrap()
    }

    #[test]
    fn values_are_parsed_from_user_input() {
        let (test, both) = (json!("t"), json!(["t", "prod"]));
        let one = field(&json!({"type": "string", "enum": ["t", "prod"], "enumNames": ["Test", "prod"]}));
        for words in ["Test (t)", "t", "Test"] {
            assert_eq!(one.value(&[words]), Ok(test.clone()), "{words}");
        }
        assert!(one.value(&["Tes"]).is_err() && one.value(&[]).is_err() && one.value(&["t", "prod"]).is_err());
        let twice = field(&json!({"type": "string", "enum": ["t", "Test"], "enumNames": ["Test", "Real"]}));
        assert!(twice.value(&["Test"]).is_err(), "the title of one choice is the value of another");
        let other = Field { takes_other: true, ..one.clone() };
        assert_eq!((other.value(&["Test"]), other.value(&["dev"])), (Ok(json!("t")), Ok(json!("dev"))));
        assert!(other.value(&[" "]).is_err() && other.fits(&json!(1)).is_err());
        let some = field(
            &json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"anyOf": [{"const": "t", "title": "Test"},
                {"const": "prod"}, {"const": "old"}]}}),
        );
        assert_eq!(some.value(&["t", "prod"]), Ok(both));
        for no in [&[][..], &["t", "t"], &["t", "prod", "old"], &["x"]] {
            assert!(some.value(no).is_err(), "{no:?}");
        }
        let yes = field(&json!({"type": "boolean"}));
        assert_eq!((yes.value(&["No"]), yes.value(&["true"])), (Ok(json!(false)), Ok(json!(true))));
        for (words, value) in [("yes", true), ("TRUE", true), ("no", false), ("false", false)] {
            assert_eq!(yes.value(&[words]), Ok(value.into()), "{words}");
        }
        let whole = field(&json!({"type": "integer", "minimum": 1, "maximum": 5}));
        assert_eq!((whole.value(&[" 5 "]), whole.words().as_str()), (Ok(json!(5)), "a whole number, 1 to 5"));
        let half = field(&json!({"type": "number", "minimum": 0.5}));
        assert_eq!(half.value(&["0.5"]), Ok(json!(0.5)));
        for (field, no) in
            [(&whole, "0"), (&whole, "6"), (&whole, "2.5"), (&whole, "x"), (&half, "0.4"), (&half, "NaN")]
        {
            assert!(field.value(&[no]).is_err(), "{no}");
        }
        let text = field(&json!({"type": "string", "minLength": 2, "maxLength": 3}));
        assert_eq!(text.value(&["äöü"]), Ok(json!("äöü")));
        assert!([" ", "a", "abcd"].iter().all(|no| text.value(&[no]).is_err()));
    }

    /// An order's sender may be another version, or not Pilotlight at all.
    #[test]
    fn a_value_of_another_type_is_rejected() {
        let fields = [
            json!({"type": "string", "enum": ["a"]}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}),
            json!({"type": "string"}),
            json!({"type": "integer"}),
        ];
        let values = [json!("a"), json!(["a"]), json!("b"), json!(1)];
        for (n, one) in fields.iter().map(field).enumerate() {
            for (m, value) in values.iter().enumerate() {
                let fits = n == m || n == 2 && m == 0; // "a" is also a text
                assert_eq!(one.fits(value).is_ok(), fits, "{one:?} {value}");
            }
            assert!(one.fits(&Value::Null).is_err());
        }
    }

    #[test]
    fn other_words_are_said_and_taken_only_where_the_form_has_them() {
        let one = field(&json!({"type": "string", "enum": ["t", "prod"]}));
        assert_eq!((one.words(), one.value(&["dev"])), ("one of its choices".into(), Err(NO_CHOICE)));
        let other = Field { takes_other: true, ..one };
        assert_eq!(other.words(), "one of its choices, or other words");
    }

    #[test]
    fn a_bound_itself_is_valid() {
        let of = ["a", "b", "c"].map(|value| FieldOption { words: value.into(), value: json!(value) }).to_vec();
        let takes = FieldType::Some { of, least: 1, most: 2 };
        let fits = |takes: &FieldType, value: Value| {
            let field = Field {
                name: "f".into(),
                about: Vec::new(),
                takes: takes.clone(),
                is_required: true,
                takes_other: false,
            };
            field.fits(&value).is_ok()
        };
        let lists = [json!([]), json!(["a"]), json!(["a", "b"]), json!(["a", "b", "c"])];
        assert_eq!(lists.map(|value| fits(&takes, value)), [false, true, true, false]);
        let takes = FieldType::Text { least: 2, most: 3 };
        assert_eq!(["a", "ab", "abc", "abcd"].map(|text| fits(&takes, json!(text))), [false, true, true, false]);
    }
}
