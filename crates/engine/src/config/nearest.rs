//! The setting that an unknown key was probably meant to be.

use super::settings::{SETTINGS, name};
use super::{host, on_change, server};

/// The known key or table that is most like `key` in `table`; `None` where none is similar. A key of another table is
/// named with its table.
pub(super) fn nearest(table: &str, key: &str) -> Option<String> {
    /// A lower similarity is chance. 1 is the same text.
    const SIMILAR: f64 = 0.8;
    /// How much less similar a key of another table counts as.
    const ELSEWHERE: f64 = 0.05;
    // Case and separators do not matter. The comparison is quadratic, so a key of hostile length is cut.
    let key = key.chars().take(60).collect::<String>().to_lowercase().replace(['_', ' '], "-");
    let similarity = |known: &str| strsim::jaro_winkler(known, &key);
    let servers = server::KEYS.iter().map(|&(key, _)| (server::TABLE, key));
    let commands = on_change::KEYS.iter().map(|&(key, _)| (on_change::TABLE, key));
    let hosts = host::KEYS.iter().map(|&(key, _)| (host::TABLE, key));
    let others = servers.chain(commands).chain(hosts);
    let known = SETTINGS.iter().map(|setting| (setting.table, setting.key)).chain(others);
    let keys = known.map(|(its_table, its_key)| {
        let name = name(its_table, its_key);
        let similarity = similarity(its_key).max(similarity(&name));
        if its_table == table { (similarity, its_key.to_owned()) } else { (similarity - ELSEWHERE, name) }
    });
    let tables = SETTINGS.iter().map(|setting| setting.table).filter(|table| !table.is_empty());
    let several = [(server::TABLE, server::HEAD), (on_change::TABLE, on_change::HEAD), (host::TABLE, host::HEAD)];
    let several = several.map(|(table, head)| (table, head.to_owned()));
    let heads = tables.map(|table| (table, format!("[{table}]"))).chain(several);
    let distance = if table.is_empty() { 0.0 } else { ELSEWHERE };
    let heads = heads.map(|(its_name, head)| (similarity(its_name) - distance, head));
    let (similarity, name) = keys.chain(heads).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (similarity > SIMILAR).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_the_one_that_was_meant() {
        for (table, key, meant) in [
            ("limits", "fresh-qiet", Some("fresh-quiet")),
            ("limits", "fresh_quiet", Some("fresh-quiet")),
            ("limits", "Tool-Busy-Stuck", Some("tool-busy-stuck")),
            ("limits", "thinkin-stuck", Some("thinking-stuck")),
            ("limits", "background-agents", Some("background-agent")),
            ("limits", "crash", Some("crashed")),
            ("list", "ended-max", Some("ended-most")),
            ("owners", "name", Some("names")),
            ("", "home", Some("[homes]")),
            ("", "limit", Some("[limits]")),
            ("", "owner", Some("[owners]")),
            ("", "fresh-quiet", Some("limits.fresh-quiet")),
            ("", "limits.fresh-quiet", Some("limits.fresh-quiet")),
            ("list", "fresh-stuck", Some("limits.fresh-stuck")),
            ("limits", "homes", Some("[homes]")),
            ("limits", "colour", None),
            ("", "terminal", Some("actions.terminal")),
            ("", "servers", Some("[[server]]")),
            ("", "onchange", Some("[[on-change]]")),
            ("", "hosts", Some("[[host]]")),
            ("host", "comand", Some("command")),
            ("on-change", "statuses", Some("status")),
            ("server", "adress", Some("address")),
            ("server", "token_file", Some("token-file")),
            ("actions", "autoreconnect", Some("auto-reconnect")),
            ("actions", "permission", Some("permissions")),
            ("", "x", None),
            ("", "", None),
        ] {
            assert_eq!(nearest(table, key).as_deref(), meant, "{table}.{key}");
        }
    }
}
