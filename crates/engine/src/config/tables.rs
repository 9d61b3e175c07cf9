//! What tables that may occur several times have in common: how they are found in a document, and their values read.

use toml::de::{DeTable, DeValue};

use super::form::{Form, Value, Wrong};
use super::problem::Problems;

/// The tables of this name, each with its offset. Anything else in their place is reported, and is none.
pub(super) fn read<'v, 't>(
    name: &str,
    head: &str,
    key: usize,
    value: &'v Value<'t>,
    report: &mut Problems<'_>,
) -> Vec<(usize, &'v DeTable<'t>)> {
    let as_table = |item: &'v Value<'t>| match item.get_ref() {
        DeValue::Table(table) => Some((item.span().start, table)),
        _ => None,
    };
    let tables = value.get_ref().as_array().and_then(|items| items.iter().map(as_table).collect());
    tables.unwrap_or_else(|| {
        let kind = value.get_ref().type_str();
        let what = format!("`{name}` must be tables, each written `{head}`; this is of type {kind}");
        report.add(Some(key), what, "It is ignored");
        Vec::new()
    })
}

/// The value of a key in such a table, if it is there.
pub(super) fn value<T>(name: &str, table: &DeTable<'_>, key: &str, form: &Form<T>) -> Result<Option<T>, Wrong> {
    let value = table.get(key).map(form.read).transpose();
    value.map_err(|wrong| wrong.of(&format!("{name}.{key}"), form.text))
}

/// Reports the keys of such a table that are none of the `known` ones.
pub(super) fn report_unknown(name: &str, known: &[(&str, &str)], table: &DeTable<'_>, report: &mut Problems<'_>) {
    for key in table.keys().filter(|key| known.iter().all(|(known, _)| known != key.get_ref())) {
        report.unknown_key(name, key);
    }
}

/// What each key takes, as comments.
pub(super) fn explained(keys: &[(&str, &str)]) -> String {
    keys.iter().map(|(key, form)| format!("# {key} takes {form}.\n")).collect()
}
