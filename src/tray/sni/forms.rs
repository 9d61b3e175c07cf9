//! What an entry is (a line, a submenu, something to click), told once to a panel that takes it apart from everything else.
//!
//! GNOME's extension asks for that alone whenever the menu was laid out anew, then for all the rest of the entries that it did not
//! know. It builds an entry again, with all that is below it, each time it hears what it is, be that new to it or not: of forty
//! sessions, that kept the shell busy for seconds. So it is told of an entry that is new in a layout, and not again: neither with
//! the next one, nor with the rest; its words are told along with it. A reader that has forgotten what it knew asks for the rest of every entry, and is told all.

use super::layout::{Properties, ROOT};

/// What the extension asks for in a layout, and nobody else.
const FORM: [&str; 2] = ["type", "children-display"];
/// What it is told instead: it takes whatever it is given, and asks for the words only when it has nothing else to do, which left
/// rows blank for as long as it was busy.
const TOLD: [&str; 6] = ["type", "children-display", "label", "enabled", "toggle-type", "toggle-state"];
/// So many panels are known at once; more than one is rare.
const READERS: usize = 4;

/// Who reads layouts so, and what each was told.
#[derive(Debug, Default)]
pub(super) struct Forms(Vec<Reader>);

#[derive(Debug)]
struct Reader {
    name: String,
    /// Up to this number, what entries are was told before the last layout that was read; up to the next one, in it.
    before: i32,
    last: i32,
}

/// What a reader of layouts is told of entries that it does not know.
pub(super) fn told() -> Vec<String> {
    TOLD.map(String::from).into()
}

impl Forms {
    /// A layout is read by somebody of this name: the entries up to the number that comes back were told before. `last` is the
    /// highest number there is.
    pub(super) fn of_layout(&mut self, name: &str, what: (i32, i32), names: &[String], last: i32) -> Option<i32> {
        if what != (ROOT, -1) || names != FORM {
            return None;
        }
        if let Some(reader) = self.0.iter_mut().find(|reader| reader.name == name) {
            (reader.before, reader.last) = (reader.last, last);
            return Some(reader.before);
        }
        if self.0.len() == READERS {
            self.0.remove(0);
        }
        self.0.push(Reader { name: name.into(), before: ROOT, last });
        Some(ROOT)
    }

    /// Takes out of what is told of entries what the last layout told.
    pub(super) fn leave_out(&self, name: &str, names: &[String], told: &mut [(i32, Properties)]) {
        let reader = self.0.iter().find(|reader| reader.name == name);
        let Some(reader) = reader.filter(|_| names.is_empty()) else { return };
        for (number, properties) in told {
            if (reader.before + 1..=reader.last).contains(number) {
                properties.retain(|name, _| !FORM.contains(name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader is told of the forms of these entries: those whose form is told in the layout, then with the rest.
    fn reads(forms: &mut Forms, last: i32, asks_for: &[i32]) -> (i32, Vec<i32>) {
        let known = forms.of_layout("panel", (ROOT, -1), &FORM.map(String::from), last).unwrap();
        let entry = |&number: &i32| (number, Properties::from([("type", "x".into()), ("label", "x".into())]));
        let mut rest: Vec<_> = asks_for.iter().map(entry).collect();
        forms.leave_out("panel", &[], &mut rest);
        assert!(rest.iter().all(|(_, properties)| properties.contains_key("label")));
        (known, rest.iter().filter(|(_, told)| told.contains_key("type")).map(|(number, _)| *number).collect())
    }

    #[test]
    fn what_an_entry_is_is_told_once_and_to_one_who_forgot_it_again() {
        let mut forms = Forms::default();
        assert_eq!(reads(&mut forms, 3, &[1, 2, 3]), (ROOT, vec![]));
        assert_eq!(reads(&mut forms, 5, &[4, 5]), (3, vec![]));
        assert_eq!(reads(&mut forms, 5, &[]), (5, vec![]));
        // It was switched off and on again, under the same name.
        assert_eq!(reads(&mut forms, 6, &[1, 2, 3, 4, 5, 6]), (5, vec![1, 2, 3, 4, 5]));
    }

    #[test]
    fn others_are_told_all_they_ask_for() {
        let mut forms = Forms::default();
        let form = FORM.map(String::from);
        for (what, names) in [((ROOT, -1), &form[..1]), ((ROOT, -1), &[]), ((7, -1), &form), ((ROOT, 1), &form)] {
            assert_eq!(forms.of_layout("other", what, names, 9), None);
        }
        forms.of_layout("panel", (ROOT, -1), &form, 9);
        let mut told = [(1, Properties::from([("type", "x".into())]))];
        forms.leave_out("other", &[], &mut told);
        forms.leave_out("panel", &form[..1], &mut told);
        assert_eq!(told[0].1.len(), 1);
    }
}
