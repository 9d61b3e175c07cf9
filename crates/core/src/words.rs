//! The sentences for what `core` decides. A reason, a refusal or an offer is a value, and only this module words it. Code
//! inspects the value, and never parses or compares the words.

/// Defines an enum together with the words for each of its values, which may name the value's fields.
macro_rules! said {
    ($(#[$meta:meta])* $name:ident {
        $($value:ident $({ $($field:ident: $type:ty),* })? => $words:literal $(, $argument:expr)*;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(clippy::empty_docs, reason = "its words say what each value is")]
        pub enum $name {
            $(#[doc = $words] $value $({ $($field: $type),* })?,)*
        }

        #[allow(dead_code, reason = "only why a session has its status is said by name")]
        impl $name {
            /// Its name, for a log that keeps nothing of its fields.
            pub(crate) const fn name(&self) -> &'static str {
                match self {
                    $(Self::$value { .. } => stringify!($value),)*
                }
            }
        }

        impl std::fmt::Display for $name {
            #[allow(unused_variables, reason = "not every field is said")]
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$value $({ $($field),* })? => write!(f, $words $(, $argument)*),)*
                }
            }
        }
    };
}

pub mod calls;
pub(crate) mod clock;
pub mod known;
pub mod offer;
pub mod reason;
pub mod refusal;
