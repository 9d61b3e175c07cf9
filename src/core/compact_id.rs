//! A compact representation of session ids: nearly all of tens of thousands are UUIDs as Copilot writes them.

use crate::core::text::is_uuid;
use std::sync::Arc;

/// A session's id, as 16 bytes if it is a UUID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CompactId {
    /// The bytes of a UUID in lower case.
    Uuid([u8; 16]),
    /// Any other id.
    Text(Arc<str>),
}

impl From<&Arc<str>> for CompactId {
    fn from(id: &Arc<str>) -> Self {
        Self::uuid(id).unwrap_or_else(|| Self::Text(Arc::clone(id)))
    }
}

impl From<&str> for CompactId {
    fn from(id: &str) -> Self {
        Self::uuid(id).unwrap_or_else(|| Self::Text(id.into()))
    }
}

impl CompactId {
    /// Only lower case: ids are compared exactly, and the conversion must be reversible.
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

    /// The id as text.
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
    fn conversion_is_lossless() {
        let uuid = "36535f61-5c7b-4f09-a70b-2f8aed97280f";
        assert!(matches!(CompactId::from(uuid), CompactId::Uuid(_)));
        for id in [
            uuid,
            &uuid.to_uppercase(),
            "",
            "x",
            "36535f615c7b4f09a70b2f8aed97280f",
            "00000000-0000-0000-0000-000000000000",
        ] {
            assert_eq!(&*CompactId::from(id).id(), id);
            assert_eq!(CompactId::from(&Arc::from(id)), CompactId::from(id));
        }
        assert_ne!(CompactId::from(uuid), CompactId::from(&*uuid.to_uppercase()));
        assert!(size_of::<CompactId>() <= 24);
    }
}
