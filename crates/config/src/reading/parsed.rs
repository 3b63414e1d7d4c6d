//! What became of a key when its table was read.

use std::ops::Range;

use toml::Spanned;

/// What became of a key.
#[derive(Clone)]
pub(crate) enum Parsed<V> {
    /// The key is absent, and has no default.
    Absent,
    /// The key is absent, and this is its default.
    Default(V),
    /// The value is wrong, or the key is absent and required. This has been reported already.
    Wrong,
    /// The file gives this value.
    Given(Spanned<V>),
}

impl<V> Parsed<V> {
    /// The value that the file gives.
    pub(crate) fn given(&self) -> Option<&Spanned<V>> {
        match self {
            Self::Given(value) => Some(value),
            _ => None,
        }
    }

    /// The place of the value that the file gives.
    pub(crate) fn span(&self) -> Option<Range<usize>> {
        self.given().map(Spanned::span)
    }

    /// The value that the file gives, or else the default.
    pub(crate) fn get(&self) -> Option<&V> {
        match self {
            Self::Given(value) => Some(value.get_ref()),
            Self::Default(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// The same as [`Parsed::get`], but the value itself.
    pub(crate) fn value(self) -> Option<V> {
        self.optional().flatten()
    }

    /// The value, or `Some(None)` if there is none. The outer `None` means that it was wrong.
    pub(crate) fn optional(self) -> Option<Option<V>> {
        match self {
            Self::Given(value) => Some(Some(value.into_inner())),
            Self::Default(value) => Some(Some(value)),
            Self::Absent => Some(None),
            Self::Wrong => None,
        }
    }

    /// The value, or `other` if there is none; `None` if it was wrong.
    pub(crate) fn or(self, other: V) -> Option<V> {
        Some(self.optional()?.unwrap_or(other))
    }

    /// Whether the key is absent.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent | Self::Default(_))
    }

    /// Whether the key is wrong, so that nobody knows its value.
    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong)
    }
}

impl<T> Parsed<Vec<T>> {
    /// The items of a list; none if there is no list.
    pub(crate) fn items(&self) -> &[T] {
        self.get().map_or(&[], Vec::as_slice)
    }

    /// Iterates over the items.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items().iter()
    }
}
