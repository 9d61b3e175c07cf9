//! Makes the names and labels of a list of sessions unique.

use super::label::{FOLDER_WIDTH, LABEL_DISTINCT_WIDTH, folder_name, short_id};
use super::remote_row::{FOLDER_MIN, at_host};
use super::row::Row;
use crate::agent::Agent;
use crate::text::{NAME_MAX, fit, legible, plain};
use std::collections::{HashMap, HashSet};
use unicode_width::UnicodeWidthStr;

/// Number of characters shown from the end of an id whose first part is not unique.
const ID_TAIL: usize = 8;

/// Makes names and labels unique. Equal names get the folder appended, then the branch, the agent, the short id, and the
/// whole id. Where the sessions are of several agents, each label ends with its agent's mark.
pub fn distinguish(rows: &mut [Row]) {
    if Agent::common(rows.iter().map(|row| &row.agent)).is_none() {
        rows.iter_mut().for_each(|row| row.label.agent = Some(row.agent.mark().into()));
    }
    distinguish_names(rows);
    distinguish_labels(rows);
}

fn distinguish_names(rows: &mut [Row]) {
    let additions: [fn(&Row) -> Option<String>; 6] = [
        |row| row.host.as_deref().map(Into::into),
        |row| row.cwd.as_deref().and_then(folder_name).and_then(|folder| legible(folder, NAME_MAX)).map(Into::into),
        |row| row.branch.as_deref().and_then(|branch| legible(branch, NAME_MAX)).map(Into::into),
        |row| Some(row.agent.word().into()),
        |row| Some(plain(short_id(&row.id), NAME_MAX).into()),
        |row| Some(plain(&row.id, NAME_MAX).into()),
    ];
    for addition in additions {
        for group in alike(rows.iter().map(|row| row.name.clone())) {
            let added: Vec<_> = group.iter().map(|&index| addition(&rows[index])).collect();
            if added.iter().all(|one| *one == added[0]) {
                continue; // it would not distinguish them
            }
            for (&index, added) in group.iter().zip(added) {
                if let Some(added) = added.filter(|added| *added != rows[index].name) {
                    rows[index].name = format!("{} · {added}", rows[index].name);
                }
            }
        }
    }
}

/// Puts the branch right after the folder of rows that would read alike; if that does not distinguish them, the id, for
/// which the folder is truncated.
fn distinguish_labels(rows: &mut [Row]) {
    let cut = |row: &Row| row.label.cut(LABEL_DISTINCT_WIDTH);
    let folders: Vec<_> = rows.iter().map(|row| row.label.who.clone()).collect();
    for group in alike(rows.iter().map(cut)) {
        let branches: HashSet<_> = group.iter().map(|&index| &rows[index].branch).collect();
        if branches.len() > 1 {
            for index in group {
                if let Some(branch) = rows[index].branch.as_deref().and_then(|text| legible(text, NAME_MAX)) {
                    rows[index].label.who = apart(&folders[index], &[&branch]);
                }
            }
        }
    }
    for group in alike(rows.iter().map(cut)) {
        for (index, id) in distinct_ids(rows, &group) {
            let branch = rows[index].branch.as_deref().and_then(|text| legible(text, NAME_MAX));
            rows[index].label.who =
                match branch.filter(|branch| apart(&folders[index], &[branch, &id]).width() <= FOLDER_WIDTH) {
                    Some(branch) => apart(&folders[index], &[&branch, &id]),
                    None => {
                        let room = FOLDER_WIDTH.saturating_sub(id.width() + " ()".len());
                        apart(&cut_folder(&folders[index], rows[index].host.as_deref(), room), &[&id])
                    }
                };
        }
    }
}

/// Groups equal texts, as lists of their indices.
fn alike(texts: impl Iterator<Item = String>) -> Vec<Vec<usize>> {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, text) in texts.enumerate() {
        groups.entry(text).or_default().push(index);
    }
    let mut groups: Vec<_> = groups.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    groups
}

/// A short form of each row's id that distinguishes the rows of a group: the first part, else the end.
fn distinct_ids(rows: &[Row], group: &[usize]) -> Vec<(usize, String)> {
    let parts: [fn(&str) -> String; 2] = [
        |id| plain(short_id(id), ID_TAIL).into(),
        |id| {
            let from = id.char_indices().rev().nth(ID_TAIL - 1).map_or(0, |(at, _)| at);
            format!("…{}", plain(&id[from..], ID_TAIL))
        },
    ];
    let of =
        |part: fn(&str) -> String| -> Vec<_> { group.iter().map(|&index| (index, part(&rows[index].id))).collect() };
    let differ = |ids: &Vec<(usize, String)>| ids.iter().map(|(_, id)| id).collect::<HashSet<_>>().len() == ids.len();
    let [first, end] = parts.map(of);
    if differ(&first) { first } else { end }
}

/// A folder in at most so many columns, of which the machine that follows it keeps its own.
fn cut_folder(folder: &str, host: Option<&str>, columns: usize) -> String {
    let at = at_host("", host);
    let folder = folder.get(..folder.len().saturating_sub(at.len())).unwrap_or(folder);
    let room = columns.saturating_sub(at.width());
    at_host(&fit(folder, if host.is_some() { room.max(FOLDER_MIN) } else { room }), host)
}

/// A folder with what distinguishes it from others: `billing-api (main, 36535f61)`.
fn apart(folder: &str, by: &[&str]) -> String {
    format!("{folder} ({})", by.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::label::Label;
    use super::*;
    use crate::limits::Limits;
    use crate::session::Session;
    use crate::time::Moment;

    /// The labels' folders of sessions with these ids, folders and branches.
    fn told(sessions: &[(&str, &str, Option<&str>)]) -> Vec<String> {
        let row = |&(id, who, branch): &(&str, &str, Option<&str>)| {
            let (row, _) = Session::default().row(Moment::default(), &Limits::default());
            let label = Label { who: who.into(), ..Label::default() };
            Row { id: id.into(), branch: branch.map(Into::into), label, ..row }
        };
        let mut rows: Vec<_> = sessions.iter().map(row).collect();
        distinguish(&mut rows);
        rows.into_iter().map(|row| row.label.who).collect()
    }

    #[test]
    fn a_long_folder_is_cut_so_that_what_distinguishes_it_fits() {
        let folder = "a-folder-with-a-very-long-name";
        let told = told(&[("aaaa-1", folder, None), ("bbbb-1", folder, None)]);
        assert_eq!(told, ["a-folder-with-a-… (aaaa)", "a-folder-with-a-… (bbbb)"]);
        assert!(told.iter().all(|who| who.width() == FOLDER_WIDTH), "all of the room is used");
    }

    #[test]
    fn ids_that_begin_alike_are_shown_by_their_ends() {
        let (one, two) = ("36535f61-5c7b-4f09-a70b-2f8aed970001", "36535f61-5c7b-4f09-a70b-2f8aed970002");
        assert_eq!(told(&[(one, "api", None), (two, "api", None)]), ["api (…ed970001)", "api (…ed970002)"]);
        assert_eq!(told(&[(one, "api", Some("main")), (two, "api", Some("dev"))]), ["api (main)", "api (dev)"]);
    }
}
