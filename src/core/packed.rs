//! Ids of sessions in little room: of tens of thousands, nearly all are UUIDs as Copilot writes them.

use crate::core::text::is_uuid;
use std::sync::Arc;

/// The id of a session that little else is kept of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Packed {
    /// The bytes that its digits say.
    Uuid([u8; 16]),
    /// Any other.
    Text(Arc<str>),
}

impl From<&Arc<str>> for Packed {
    fn from(id: &Arc<str>) -> Self {
        Self::uuid(id).unwrap_or_else(|| Self::Text(Arc::clone(id)))
    }
}

impl From<&str> for Packed {
    fn from(id: &str) -> Self {
        Self::uuid(id).unwrap_or_else(|| Self::Text(id.into()))
    }
}

impl Packed {
    /// Only what is written in small letters: another way to write it is another id.
    fn uuid(id: &str) -> Option<Self> {
        if !is_uuid(id) || id.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let mut digits = id.chars().filter_map(|digit| digit.to_digit(16));
        let mut bytes = [0; 16];
        for byte in &mut bytes {
            *byte = u8::try_from(digits.next()? << 4 | digits.next()?).ok()?;
        }
        Some(Self::Uuid(bytes))
    }

    /// The id.
    pub(crate) fn id(&self) -> Arc<str> {
        let bytes = match self {
            Self::Text(id) => return Arc::clone(id),
            Self::Uuid(bytes) => bytes,
        };
        let mut id = String::with_capacity(36);
        for (n, byte) in bytes.iter().enumerate() {
            if matches!(n, 4 | 6 | 8 | 10) {
                id.push('-');
            }
            for digit in [byte >> 4, byte & 15] {
                id.extend(char::from_digit(digit.into(), 16));
            }
        }
        id.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_what_it_was() {
        let uuid = "36535f61-5c7b-4f09-a70b-2f8aed97280f";
        assert!(matches!(Packed::from(uuid), Packed::Uuid(_)));
        for id in [
            uuid,
            &uuid.to_uppercase(),
            "",
            "x",
            "36535f615c7b4f09a70b2f8aed97280f",
            "00000000-0000-0000-0000-000000000000",
        ] {
            assert_eq!(&*Packed::from(id).id(), id);
            assert_eq!(Packed::from(&Arc::from(id)), Packed::from(id));
        }
        assert_ne!(Packed::from(uuid), Packed::from(&*uuid.to_uppercase()));
        assert!(size_of::<Packed>() <= 24);
    }
}
