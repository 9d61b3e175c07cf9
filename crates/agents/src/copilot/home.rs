//! Which folder is Copilot's home.

/// The folder of the user's home that it is in, unless [`VARIABLE`] names another.
pub(crate) const NAME: &str = ".copilot";
/// The variable that names another.
pub(crate) const VARIABLE: &str = "COPILOT_HOME";
