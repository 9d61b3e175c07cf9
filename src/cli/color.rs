//! Whether output is coloured: by `--color`, else by the environment (no-color.org, bixense.com/clicolors), else if it
//! goes to a terminal.

use clap::ColorChoice;
use std::io::{self, IsTerminal};

/// Whether standard output is coloured.
pub(super) fn on_stdout(choice: ColorChoice) -> bool {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    has_colors(choice, io::stdout().is_terminal(), env)
}

fn has_colors(choice: ColorChoice, is_terminal: bool, env: impl Fn(&str) -> Option<String>) -> bool {
    let is_off = |name| env(name).as_deref() == Some("0");
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if env("NO_COLOR").is_some() => false,
        ColorChoice::Auto if env("CLICOLOR_FORCE").is_some() && !is_off("CLICOLOR_FORCE") => true,
        ColorChoice::Auto => is_terminal && !is_off("CLICOLOR") && env("TERM").as_deref() != Some("dumb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_overrides_the_environment_which_overrides_the_terminal() {
        let colors = |choice, terminal, set: &[(&str, &str)]| {
            has_colors(choice, terminal, |name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let (no, force) = (("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"));
        for terminal in [true, false] {
            assert!(colors(ColorChoice::Always, terminal, &[no]));
            assert!(!colors(ColorChoice::Never, terminal, &[force]));
            assert!(!colors(ColorChoice::Auto, terminal, &[no, force]));
            assert!(colors(ColorChoice::Auto, terminal, &[force]));
            assert_eq!(colors(ColorChoice::Auto, terminal, &[("CLICOLOR_FORCE", "0")]), terminal);
            assert_eq!(colors(ColorChoice::Auto, terminal, &[]), terminal);
        }
        assert!(!colors(ColorChoice::Auto, true, &[("CLICOLOR", "0")]));
        assert!(!colors(ColorChoice::Auto, true, &[("TERM", "dumb")]));
    }
}
