//! Popups about sessions on another machine: another user of this one, behind a command of the settings.

use super::{Desk, NO_GRACE};
use crate::control::hosts::serves;
use crate::support::synthetic::User as FarUser;

#[test]
fn case_454_what_a_session_on_another_machine_asks_is_a_popup_until_it_is_answered_there() {
    let remote = FarUser::new();
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    let words = serde_json::to_string(&serves(&remote)).unwrap();
    let desk = Desk::new(&format!("{NO_GRACE}[[host]]\nname = \"devbox\"\ncommand = {words}\n"));
    let known = || desk.user.rows().iter().any(|row| row["host"] == "devbox").then_some(());
    super::wait_until(super::SOON, "it is known", || format!("{:?}", desk.user.rows()), known);
    session.asks_permission("r1");
    let popup = desk.popups.wait_for(1);
    assert!(popup.title.contains("project @devbox"), "{popup:?}");
    // It can only be answered in its terminal, which is not here.
    assert!(
        !popup.actions.iter().any(|action| action.starts_with("approve") || action.starts_with("show")),
        "{popup:?}"
    );
    session.log_event("permission.completed", r#"{"requestId":"r1","result":{"kind":"approved"}}"#);
    desk.popups.wait_for_closed(&[popup.number]);
}
