//! Finds a session among all: by words of its title, its folder, its branch, its agent or its id, in any order.

use super::row::Row;

/// The sessions, what is typed, and which of them it finds.
#[derive(Clone, Debug)]
pub struct Finder {
    /// The session that was last heard of first.
    rows: Vec<Row>,
    /// What each row can be found by, in lower case.
    texts: Vec<String>,
    typed: String,
    /// Indices of the rows that are found, in their order.
    found: Vec<usize>,
    /// The selected one among these.
    at: usize,
}

impl Finder {
    /// Nothing is typed yet, so all sessions are found.
    pub fn new(mut rows: Vec<Row>) -> Self {
        rows.sort_by_cached_key(|row| std::cmp::Reverse((row.last(), row.id.clone())));
        let texts = rows.iter().map(text).collect();
        let found = (0..rows.len()).collect();
        Self { rows, texts, typed: String::new(), found, at: 0 }
    }

    /// These are the sessions now. What is typed stays, and so does the selected session, if it is still among them. Returns
    /// those before.
    pub fn renew(&mut self, all: Self) -> Self {
        let selected = self.selected().map(|row| (row.host.clone(), row.id.clone()));
        let typed = std::mem::take(&mut self.typed);
        let before = std::mem::replace(self, Self { typed, ..all });
        self.narrow(0..self.rows.len());
        let is_selected = |index: &usize| {
            selected.as_ref().is_some_and(|(host, id)| (&self.rows[*index].host, &self.rows[*index].id) == (host, id))
        };
        self.at = self.found.iter().position(is_selected).unwrap_or_default();
        before
    }

    /// A character is typed: fewer sessions are found.
    pub fn push(&mut self, typed: char) {
        self.typed.push(typed);
        let before = std::mem::take(&mut self.found);
        self.narrow(before.into_iter());
    }

    /// The last character is deleted.
    pub fn pop(&mut self) {
        if self.typed.pop().is_some() {
            self.narrow(0..self.rows.len());
        }
    }

    /// The last word is deleted.
    pub fn pop_word(&mut self) {
        let rest = self.typed.trim_end();
        let words = rest.char_indices().rfind(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8());
        self.typed.truncate(words);
        self.narrow(0..self.rows.len());
    }

    /// Everything that was typed is deleted.
    pub fn clear(&mut self) {
        self.typed.clear();
        self.narrow(0..self.rows.len());
    }

    /// Selects a session further down, or up.
    pub fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.found.len().saturating_sub(1));
    }

    /// What was typed.
    pub fn typed(&self) -> &str {
        &self.typed
    }

    /// How many sessions are found, of how many.
    pub fn count(&self) -> (usize, usize) {
        (self.found.len(), self.rows.len())
    }

    /// All sessions.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The selected session, if any is found.
    pub fn selected(&self) -> Option<&Row> {
        self.found.get(self.at).map(|index| &self.rows[*index])
    }

    /// As many of those that are found as fit into a height, with the selected one among them, which is marked.
    pub fn page(&self, height: usize) -> impl Iterator<Item = (bool, &Row)> {
        let from = (self.at + 1).saturating_sub(height);
        let page = self.found.iter().enumerate().skip(from).take(height);
        page.map(|(at, index)| (at == self.at, &self.rows[*index]))
    }

    /// Keeps those of `rows` that have every word that is typed. The first one is selected.
    fn narrow(&mut self, rows: impl Iterator<Item = usize>) {
        let typed = self.typed.to_lowercase();
        let words: Vec<_> = typed.split_whitespace().collect();
        self.found = rows.filter(|index| words.iter().all(|word| self.texts[*index].contains(word))).collect();
        self.at = 0;
    }
}

/// What a row can be found by. A line break keeps words from being found across two parts.
fn text(row: &Row) -> String {
    let label = [Some(&*row.label.who), row.label.title.as_deref(), Some(&*row.name)];
    let rest = [row.cwd.as_deref(), row.branch.as_deref(), Some(row.agent.word()), Some(&*row.id)];
    let parts: Vec<_> = label.into_iter().chain(rest).flatten().collect();
    parts.join("\n").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::{Label, Session};
    use super::*;
    use crate::limits::Limits;
    use crate::time::{Moment, Time};

    fn row(id: &str, folder: &str, title: &str, last: i64) -> Row {
        let row = Session { id: id.into(), ..Session::default() }.row(Moment::default(), &Limits::default()).0;
        let label = Label { who: folder.into(), agent: None, title: Some(title.into()) };
        Row {
            cwd: Some(format!("/code/{folder}").into()),
            name: title.into(),
            label,
            last_progress: Some(Time(last)),
            ..row
        }
    }

    fn finder() -> Finder {
        Finder::new(vec![
            row("3aac", "billing-api", "Write the migration", 10),
            row("90ff", "infra", "Rotate TLS", 30),
            row("77aa", "infra", "Load test", 20),
        ])
    }

    fn found(finder: &Finder) -> Vec<&str> {
        finder.page(10).map(|(_, row)| &*row.id).collect()
    }

    #[test]
    fn sessions_are_found_by_words_in_any_order_the_latest_first() {
        let mut finder = finder();
        assert_eq!((found(&finder), finder.count()), (vec!["90ff", "77aa", "3aac"], (3, 3)));
        for (typed, ids) in [
            ("infra", vec!["90ff", "77aa"]),
            ("  test INFRA ", vec!["77aa"]),
            ("3AAC", vec!["3aac"]),
            ("code/billing", vec!["3aac"]),
            ("infra write", vec![]),
            ("infrarotate", vec![]),
        ] {
            finder.clear();
            typed.chars().for_each(|c| finder.push(c));
            assert_eq!((found(&finder), finder.typed()), (ids, typed));
        }
        assert_eq!((finder.selected(), finder.count()), (None, (0, 3)));
        finder.step(1);
        finder.pop_word();
        assert_eq!((finder.typed(), finder.count().0), ("", 3));
    }

    #[test]
    fn what_is_deleted_widens_the_search_again() {
        let mut finder = finder();
        "tls ü".chars().for_each(|c| finder.push(c));
        assert_eq!(found(&finder), [""; 0]);
        finder.pop();
        assert_eq!((found(&finder), finder.typed()), (vec!["90ff"], "tls "));
        finder.pop_word();
        finder.pop();
        assert_eq!(finder.count().0, 3);
        finder.clear();
        "rotate tls".chars().for_each(|c| finder.push(c));
        finder.pop_word();
        assert_eq!(finder.typed(), "rotate ", "the words before it stay");
    }

    #[test]
    fn case_446_sessions_that_come_in_leave_what_is_typed_and_selected() {
        let mut finder = finder();
        "infra".chars().for_each(|c| finder.push(c));
        finder.step(1);
        let remote = Row { host: Some("devbox".into()), ..row("77aa", "infra", "Load test", 40) };
        let mut rows = finder.rows().to_vec();
        rows.push(remote);
        let before = finder.renew(Finder::new(rows));
        assert_eq!(before.count().1, 3);
        assert_eq!((found(&finder), finder.typed()), (vec!["77aa", "90ff", "77aa"], "infra"));
        let selected = finder.selected().unwrap();
        assert_eq!((&*selected.id, &selected.host, selected.last()), ("77aa", &None, Time(20)));
        drop(finder.renew(Finder::new(vec![row("1111", "infra", "Another", 1)])));
        assert_eq!(finder.selected().unwrap().id, "1111".into(), "else the first one");
    }

    #[test]
    fn the_selected_session_is_on_the_page() {
        let mut finder = finder();
        let page = |finder: &Finder| {
            finder.page(2).map(|(is_selected, row)| (is_selected, row.id.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(page(&finder), [(true, "90ff".into()), (false, "77aa".into())]);
        finder.step(-1);
        assert_eq!(finder.selected().unwrap().id, "90ff".into());
        finder.step(2);
        assert_eq!(page(&finder), [(false, "77aa".into()), (true, "3aac".into())]);
        finder.step(5);
        assert_eq!(finder.selected().unwrap().id, "3aac".into());
        "load".chars().for_each(|c| finder.push(c));
        assert_eq!(finder.selected().unwrap().id, "77aa".into(), "the first one that is found");
        assert_eq!(finder.page(0).count(), 0);
    }
}
