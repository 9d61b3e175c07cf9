//! What Pilotlight has to show of a situation.

use super::scene::{Scene, Sight, View};
use std::time::Duration;

/// The limits of a test, short enough to wait for.
pub(super) struct Limits {
    /// The model used no tool.
    pub(super) quiet: Duration,
    pub(super) stuck: Duration,
    /// It used one, or nothing can be known.
    pub(super) long_quiet: Duration,
    pub(super) long_stuck: Duration,
}

/// With time for two looks 10 s apart before each of them.
pub(super) const FULL: Limits = Limits {
    quiet: Duration::from_secs(15),
    stuck: Duration::from_secs(30),
    long_quiet: Duration::from_secs(20),
    long_stuck: Duration::from_secs(40),
};

/// So short that the looks are 3 and 5 s apart.
pub(super) const QUICK: Limits = Limits {
    quiet: Duration::from_secs(6),
    stuck: Duration::from_secs(10),
    long_quiet: Duration::from_secs(8),
    long_stuck: Duration::from_secs(14),
};

/// How late a status may be shown: a look takes 10 s, and the machine is busy.
const SLACK: Duration = Duration::from_secs(25);
/// How much earlier than its limit a status may be seen: the limit counts from the log, and the prompt is noted later.
const EARLY: Duration = Duration::from_secs(3);

/// Words of a reason.
const SILENT: &str = "its connection to the model has been silent";
const UNSEEN: &str = "cannot see whether it receives";
const UNANSWERED: [&str; 2] = ["the network does not answer", "cannot reach its model"];

impl Limits {
    /// The settings with these limits.
    pub(super) fn settings(&self) -> String {
        let keys = [
            ("fresh-quiet", self.quiet),
            ("fresh-stuck", self.stuck),
            ("thinking-quiet", self.long_quiet),
            ("thinking-stuck", self.long_stuck),
            // Longer than any test here.
            ("tool-quiet", self.long_stuck * 5),
            ("tool-stuck", self.long_stuck * 5),
        ];
        let line = |(key, limit): (&str, Duration)| format!("{key} = \"{}s\"\n", limit.as_secs());
        format!("[limits]\n{}", keys.map(line).concat())
    }

    /// More than twice the limit of a model that used no tool, and than any other.
    pub(super) fn twice(&self) -> Duration {
        self.stuck * 2 + Duration::from_secs(5)
    }
}

/// What a situation looks like over twice its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// An answer arrives: `working` all the time.
    Receives,
    /// So little arrives that it may be `quiet`, but never `stuck`.
    Trickles,
    /// An answer that breaks off and begins anew, until Copilot gives up: never `stuck`.
    Breaks,
    /// Signs of life and no answer: `quiet`, but not `stuck` within an hour.
    Kept,
    /// A connection that says nothing: `quiet` and `stuck` at their limits.
    Silent,
    /// The same of a session that may have its answers in one piece: `stuck` at the longer limit.
    Unseen,
    /// Stuck, and later an answer: `working` again.
    Late,
    /// Copilot waits before it tries again: `quiet`, and not `stuck` before the longer limit.
    Waits,
    /// Copilot tries again and again, and may give up: not `stuck` before the longer limit.
    TriesAgain,
    /// The network does not answer: `stuck` as soon as that is seen.
    Unanswered,
    /// The same of a session that may have its answers in one piece. By its limit, Copilot has closed the connection.
    CutOff,
    /// Copilot itself does not run: the same.
    Unread,
    /// The log says it all: this status at the end, and never `stuck`.
    Known(&'static str),
}

impl Outlook {
    /// Whether its answer arrives as soon as the play is finished.
    pub(super) fn is_answered(self) -> bool {
        !matches!(
            self,
            Self::Breaks | Self::Waits | Self::TriesAgain | Self::Unanswered | Self::CutOff | Self::Known(_)
        )
    }

    /// What was shown otherwise, if anything was.
    pub(super) fn fault(self, scene: &Scene, limits: &Limits) -> Option<String> {
        let found = |status: &str| scene.sights.iter().find(|sight| sight.status == status);
        let never = |statuses: &[&str]| {
            let sight = statuses.iter().find_map(|status| found(status))?;
            Some(format!("{:?} after {} s: {}", sight.status, sight.at.as_secs(), sight.because))
        };
        let not_before = |status: &str, limit: Duration| {
            let sight = scene.sights.iter().find(|sight| sight.status == status && sight.at + EARLY < limit)?;
            Some(format!("{status:?} after {} s already: {}", sight.at.as_secs(), sight.because))
        };
        let reaches = |status: &str, limit: Duration, words: &[&str]| {
            let fits = |sight: &&Sight| {
                sight.view == View::Tray
                    && sight.status == status
                    && sight.at <= limit + SLACK
                    && words.iter().any(|word| sight.because.contains(word))
            };
            let missing = scene.sights.iter().find(fits).is_none();
            missing.then(|| format!("never {status:?} by {} s because of {words:?}", limit.as_secs()))
        };
        let never_says = |words: &str| {
            // Some plays begin with text. Without a tray, one look cannot tell signs of life that follow from it.
            let is_one_look = |sight: &&Sight| self == Self::Kept && sight.view != View::Tray;
            let says = |sight: &&Sight| sight.at > limits.quiet && sight.because.contains(words);
            let sight = scene.sights.iter().filter(|sight| !is_one_look(sight)).find(says)?;
            Some(format!("says {:?} after {} s", sight.because, sight.at.as_secs()))
        };
        let ends = |status: &str| {
            let last = scene.last()?;
            (last.status != status).then(|| format!("{:?} at the end: {}", last.status, last.because))
        };
        match self {
            Self::Receives => never(&["quiet", "stuck", "failed", "crashed"])
                .or_else(|| reaches("working", limits.stuck, &["receiving an answer"])),
            Self::Trickles => never(&["stuck", "failed", "crashed"]),
            Self::Breaks => never(&["crashed"]).or_else(|| {
                // Between two tries, one look without a tray sees no connection, and a log that has been silent since the
                // first.
                let is_one_look = |sight: &Sight| {
                    sight.view != View::Tray
                        && sight.at + EARLY >= limits.long_stuck
                        && sight.because.contains("no connection to a model is open")
                };
                let is_stuck = |sight: &&Sight| sight.status == "stuck" && !is_one_look(sight);
                let sight = scene.sights.iter().find(is_stuck)?;
                Some(format!("stuck after {} s: {}", sight.at.as_secs(), sight.because))
            }),
            Self::Kept => never(&["stuck", "failed", "crashed"])
                .or_else(|| never_says("receiving an answer"))
                .or_else(|| reaches("quiet", limits.quiet, &["signs of life"])),
            Self::Silent => never_says("receiving an answer")
                .or_else(|| not_before("quiet", limits.quiet))
                .or_else(|| not_before("stuck", limits.stuck))
                .or_else(|| reaches("stuck", limits.stuck, &[SILENT])),
            Self::Unseen => never_says("receiving an answer")
                .or_else(|| not_before("quiet", limits.quiet))
                .or_else(|| not_before("stuck", limits.long_stuck))
                .or_else(|| reaches("stuck", limits.long_stuck, &[SILENT, UNSEEN])),
            Self::Late => reaches("stuck", limits.long_stuck, &[SILENT, UNSEEN]).or_else(|| ends("working")),
            Self::Waits => never(&["crashed"])
                .or_else(|| never_says("receiving an answer"))
                .or_else(|| not_before("stuck", limits.long_stuck))
                .or_else(|| reaches("quiet", limits.quiet, &["no connection to a model is open"])),
            Self::TriesAgain => never(&["crashed"]).or_else(|| not_before("stuck", limits.long_stuck)),
            Self::Unanswered => reaches("stuck", limits.stuck, &UNANSWERED),
            Self::CutOff => reaches("stuck", limits.stuck, &UNANSWERED)
                .and_then(|_| reaches("stuck", limits.long_stuck, &["no connection to a model is open"])),
            Self::Unread => reaches("stuck", limits.stuck, &["does not read the data that arrived"]),
            Self::Known(status) => never(&["stuck"]).or_else(|| ends(status)),
        }
    }
}
