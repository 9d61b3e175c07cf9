//! Functions are short enough to be read at a glance.

use crate::{code_of, root, sources};

/// How many lines of code a function may have, with its signature and without blank lines and comments.
const LINES: usize = 60;

/// The name of the function that begins in this line.
fn function_in(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        rest = public.strip_prefix('(').and_then(|scope| scope.split_once(')')).map_or(public, |(_, rest)| rest);
        rest = rest.trim_start();
    }
    for word in ["default ", "const ", "async ", "unsafe ", "extern \"system\" ", "extern \"C\" "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

/// The functions in formatted code without comments, each with its number of lines. One that is inside of another counts
/// for both.
fn lengths(code: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = code.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let length = |at: usize| {
        let line = lines[at];
        let name = function_in(line)?;
        let indent = &line[..line.len() - line.trim_start().len()];
        // It ends with a brace that is indented as much as its signature, or has no body at all.
        let closes = |line: &str| line.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}'));
        let (mut has_body, mut count) = (false, 0);
        for line in &lines[at..] {
            (has_body, count) = (has_body || line.contains('{'), count + 1);
            if closes(line) || !has_body && line.ends_with(';') || count == 1 && line.ends_with('}') {
                return Some((name, count));
            }
        }
        panic!("{name} does not end:\n{code}")
    };
    (0..lines.len()).filter_map(length).collect()
}

#[test]
fn no_function_is_long() {
    let (mut found, mut long) = (0, Vec::new());
    for path in sources(&root().join("src")) {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if name.ends_with("tests.rs") || name.contains("/tests/") || name.ends_with("testing.rs") {
            continue;
        }
        let code = code_of(&path);
        let lengths = lengths(&code);
        found += lengths.len();
        let above = lengths.iter().filter(|(_, lines)| *lines > LINES);
        long.extend(above.map(|(function, lines)| format!("{name}: {function} has {lines} lines")));
    }
    assert!(found > 2000, "functions were found: {found}");
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn the_lines_of_a_function_are_counted() {
    let code = "fn a() {\n\n    b();\n    match c {\n        D { e } => {}\n    }\n}\n\n\
                impl F {\n    pub(super) const fn g(\n        self,\n    ) -> H<'_> {\n        self.h\n    }\n\n\
                \x20   fn i(&self) {}\n}\n\
                trait J {\n    fn k<L>(\n        l: L,\n    );\n    async fn m();\n}\n\
                type N = fn(O) -> P;\n";
    assert_eq!(lengths(code), [("a", 6), ("g", 5), ("i", 1), ("k", 3), ("m", 1)]);
    let nested = format!("fn p() {{\n    fn q() {{\n{}    }}\n}}\n", "        r();\n".repeat(LINES));
    assert_eq!(lengths(&nested), [("p", LINES + 4), ("q", LINES + 2)]);
}
