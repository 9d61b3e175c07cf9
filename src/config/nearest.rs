//! The setting that was meant by one that there is not.

use super::server;
use super::settings::{SETTINGS, name};

/// The known key, or table, that `key` in `table` most likely stands for; `None` where none is like it. A key of another
/// table is named with its table.
pub(super) fn nearest(table: &str, key: &str) -> Option<String> {
    /// Below this, likeness is chance. 1 is the same text.
    const LIKE: f64 = 0.8;
    /// What a key of another table must be more alike by than one of the same.
    const ELSEWHERE: f64 = 0.05;
    // Slips of style are none of substance; and the comparison is quadratic, so a key of hostile length is cut.
    let key = key.chars().take(60).collect::<String>().to_lowercase().replace(['_', ' '], "-");
    let servers = server::KEYS.iter().map(|&(key, _)| (server::TABLE, key));
    let keys =
        SETTINGS.iter().map(|setting| (setting.table, setting.key)).chain(servers).map(|(its_table, its_key)| {
            let name = name(its_table, its_key);
            let alike = strsim::jaro_winkler(its_key, &key).max(strsim::jaro_winkler(&name, &key));
            if its_table == table { (alike, its_key.to_owned()) } else { (alike - ELSEWHERE, name) }
        });
    let headed =
        SETTINGS.iter().filter(|setting| !setting.table.is_empty()).map(|s| (s.table, format!("[{}]", s.table)));
    let tables = headed.chain([(server::TABLE, server::HEAD.to_owned())]).map(|(its_name, shown)| {
        let far = if table.is_empty() { 0.0 } else { ELSEWHERE };
        (strsim::jaro_winkler(its_name, &key) - far, shown)
    });
    let (alike, name) = keys.chain(tables).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (alike > LIKE).then_some(name)
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
            ("", "home", Some("homes")),
            ("", "limit", Some("[limits]")),
            ("", "owner", Some("[owners]")),
            ("", "fresh-quiet", Some("limits.fresh-quiet")),
            ("", "limits.fresh-quiet", Some("limits.fresh-quiet")),
            ("list", "fresh-stuck", Some("limits.fresh-stuck")),
            ("limits", "homes", Some("homes")),
            ("limits", "colour", None),
            ("", "terminal", Some("actions.terminal")),
            ("", "servers", Some("[[server]]")),
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
