//! A field of a form: what it takes, what its user gives, and whether that fits.

use super::{UNKNOWN, strings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// What a field may say of itself, whatever it takes. Anything else that is not read here may restrict what fits it.
const ABOUT_KEYS: [&str; 4] = ["type", "title", "description", "default"];
/// Said of a field of another kind.
const MORE: &str = "its form asks for more than choices, texts and numbers";

/// One field of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The name that its value is sent by.
    pub name: Box<str>,
    /// What it says of itself: its title, its description.
    pub about: Vec<Box<str>>,
    /// What it takes.
    pub takes: Takes,
    /// The form is not accepted without it.
    pub is_required: bool,
}

/// What a field takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Takes {
    /// One of these.
    One(Vec<Named>),
    /// So many of these, each once.
    Some {
        /// Which.
        of: Vec<Named>,
        /// At least so many.
        least: u64,
        /// At most so many.
        most: u64,
    },
    /// A text of at least and at most so many characters.
    Text {
        /// At least.
        least: u64,
        /// At most.
        most: u64,
    },
    /// A number between these, both included.
    Number {
        /// It has no fraction.
        is_whole: bool,
        /// At least.
        least: Option<Number>,
        /// At most.
        most: Option<Number>,
    },
}

/// A value that a field lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// What is shown of it, whole and unaltered.
    pub words: Box<str>,
    /// What its server is told.
    pub value: Value,
}

impl Field {
    /// Reads a field of this name.
    ///
    /// # Errors
    /// Why it cannot be filled in from here, in words that hold nothing of it.
    pub(super) fn read(name: &str, field: &Value, is_required: bool) -> Result<Self, &'static str> {
        let field = field.as_object().ok_or(UNKNOWN)?;
        let word = |key: &str| field.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let about = ["title", "description"].into_iter().filter_map(word).map(Into::into).collect();
        let (takes, keys): (Takes, &[&str]) = match (field.get("type").and_then(Value::as_str), listed(field)?) {
            (Some("string") | None, Some(named)) => (Takes::One(named), &["enum", "enumNames", "oneOf"]),
            (Some("string"), None) => {
                let (least, most) = bounds(field, "minLength", "maxLength")?;
                (Takes::Text { least, most }, &["minLength", "maxLength"])
            }
            (Some("boolean"), None) => {
                let named = |(words, value): (&str, bool)| Named { words: words.into(), value: value.into() };
                (Takes::One([("Yes", true), ("No", false)].map(named).into()), &[])
            }
            (Some(kind @ ("number" | "integer")), None) => {
                let number = |key: &str| match field.get(key) {
                    None => Ok(None),
                    Some(Value::Number(number)) => Ok(Some(number.clone())),
                    Some(_) => Err(UNKNOWN),
                };
                let (least, most) = (number("minimum")?, number("maximum")?);
                (Takes::Number { is_whole: kind == "integer", least, most }, &["minimum", "maximum"])
            }
            (Some("array"), None) => {
                let items = field.get("items").and_then(Value::as_object).ok_or(UNKNOWN)?;
                if items.keys().any(|key| !["type", "enum", "anyOf"].contains(&&**key))
                    || items.get("type").is_some_and(|kind| kind != "string")
                {
                    return Err(MORE);
                }
                let of = listed(items)?.ok_or(MORE)?;
                let (least, most) = bounds(field, "minItems", "maxItems")?;
                (Takes::Some { of, least, most }, &["items", "minItems", "maxItems"])
            }
            _ => return Err(MORE),
        };
        if field.keys().any(|key| !ABOUT_KEYS.contains(&&**key) && !keys.contains(&&**key)) {
            return Err(MORE);
        }
        if matches!(&takes, Takes::One(of) | Takes::Some { of, .. } if of.is_empty()) {
            return Err(UNKNOWN);
        }
        Ok(Self { name: name.into(), about, takes, is_required })
    }

    /// The values that it lists.
    pub(crate) fn listed(&self) -> &[Named] {
        match &self.takes {
            Takes::One(of) | Takes::Some { of, .. } => of,
            Takes::Text { .. } | Takes::Number { .. } => &[],
        }
    }

    /// Everything that is shown of it.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let about = self.about.iter().map(|about| &**about);
        [&*self.name].into_iter().chain(about).chain(self.listed().iter().map(|named| &*named.words))
    }

    /// What it takes, in words.
    pub(crate) fn words(&self) -> String {
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
            Takes::One(_) => "one of its choices".to_owned(),
            Takes::Some { least, most, .. } => format!("any of its choices{}", counts(*least, *most)),
            Takes::Text { least: 0, most: u64::MAX } => "a text".to_owned(),
            Takes::Text { least, most } => format!("a text{} characters", counts(*least, *most)),
            Takes::Number { is_whole, least, most } => {
                let kind = if *is_whole { "a whole number" } else { "a number" };
                format!("{kind}{}", range(least.as_ref().map(Number::to_string), most.as_ref().map(Number::to_string)))
            }
        };
        format!("{takes}{}", if self.is_required { "" } else { "; may be left out" })
    }

    /// The value that its user means by these words: one text, or one for each choice.
    ///
    /// # Errors
    /// Why they are none, in words that hold nothing of the form.
    pub(crate) fn value(&self, given: &[&str]) -> Result<Value, &'static str> {
        let value = match (&self.takes, given) {
            (Takes::Some { of, .. }, given) => given.iter().map(|words| choice(of, words)).collect::<Result<_, _>>()?,
            (_, [] | [_, _, ..]) => return Err("it takes one value"),
            (Takes::One(of), [words]) => choice(of, words)?,
            (Takes::Text { .. }, [text]) => Value::from(*text),
            (Takes::Number { .. }, [text]) => Value::Number(text.trim().parse().map_err(|_| "it takes a number")?),
        };
        self.fits(&value).map(|()| value)
    }

    /// Whether its server may be told this value.
    ///
    /// # Errors
    /// Why not, in words that hold nothing of the form.
    pub(super) fn fits(&self, value: &Value) -> Result<(), &'static str> {
        let lists = |of: &[Named], value: &Value| of.iter().any(|named| named.value == *value);
        match (&self.takes, value) {
            (Takes::One(of), value) if lists(of, value) => Ok(()),
            (Takes::One(_), _) => Err("it takes one of its choices"),
            (Takes::Some { of, least, most }, Value::Array(values)) => {
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
            (Takes::Some { .. }, _) => Err("it takes some of its choices"),
            (Takes::Text { .. }, Value::String(text)) if text.trim().is_empty() => Err("an empty text is no answer"),
            (Takes::Text { least, most }, Value::String(text)) => {
                let length = text.chars().count() as u64;
                if length < *least {
                    return Err("the text is shorter than its form allows");
                }
                if length > *most { Err("the text is longer than its form allows") } else { Ok(()) }
            }
            (Takes::Text { .. }, _) => Err("it takes a text"),
            (Takes::Number { is_whole, least, most }, Value::Number(number)) => {
                if *is_whole && number.as_i64().is_none() && number.as_u64().is_none() {
                    return Err("it takes a whole number");
                }
                let of = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
                let is_within = least.as_ref().is_none_or(|least| of(number) >= of(least))
                    && most.as_ref().is_none_or(|most| of(number) <= of(most));
                if is_within { Ok(()) } else { Err("the number is not one that its form allows") }
            }
            (Takes::Number { .. }, _) => Err("it takes a number"),
        }
    }
}

/// The one of these that reads so, or is sent so.
fn choice(of: &[Named], words: &str) -> Result<Value, &'static str> {
    let reads = |named: &&Named| match &named.value {
        Value::Bool(yes) => *named.words == *words || words == if *yes { "true" } else { "false" },
        value => *named.words == *words || value == words,
    };
    let mut read = of.iter().filter(reads);
    match (read.next(), read.next()) {
        (Some(named), None) => Ok(named.value.clone()),
        (Some(_), Some(_)) => Err("two of its choices read like this"),
        (None, _) => Err("none of its choices reads like this"),
    }
}

/// Two counts that bound something.
fn bounds(field: &Map<String, Value>, least: &str, most: &str) -> Result<(u64, u64), &'static str> {
    let number = |key: &str, other| field.get(key).map_or(Some(other), Value::as_u64).ok_or(UNKNOWN);
    Ok((number(least, 0)?, number(most, u64::MAX)?))
}

/// The values that a field lists, each with what is shown of it; `None` where it lists none.
fn listed(field: &Map<String, Value>) -> Result<Option<Vec<Named>>, &'static str> {
    let named = |name: Option<&str>, value: &str| {
        let words = match name {
            Some(name) if name != value => format!("{name} ({value})"),
            _ => value.to_owned(),
        };
        Named { words: words.into(), value: value.into() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(field: &Value) -> Field {
        Field::read("db", field, true).unwrap()
    }

    #[test]
    fn a_value_is_read_from_what_its_user_types() {
        let (test, both) = (json!("t"), json!(["t", "prod"]));
        let one = field(&json!({"type": "string", "enum": ["t", "prod"], "enumNames": ["Test", "prod"]}));
        assert_eq!((one.value(&["Test (t)"]), one.value(&["t"])), (Ok(test.clone()), Ok(test)));
        assert!(one.value(&["Test"]).is_err() && one.value(&[]).is_err() && one.value(&["t", "prod"]).is_err());
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

    /// Whoever gives an order may be another version, or nobody of ours.
    #[test]
    fn a_value_of_another_kind_does_not_fit() {
        let fields = [
            json!({"type": "string", "enum": ["a"]}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}),
            json!({"type": "string"}),
            json!({"type": "integer"}),
        ];
        let values = [json!("a"), json!(["a"]), json!("b"), json!(1)];
        for (n, one) in fields.iter().map(field).enumerate() {
            for (m, value) in values.iter().enumerate() {
                let fits = n == m || n == 2 && m == 0; // "a" is a text, too
                assert_eq!(one.fits(value).is_ok(), fits, "{one:?} {value}");
            }
            assert!(one.fits(&Value::Null).is_err());
        }
    }
}
