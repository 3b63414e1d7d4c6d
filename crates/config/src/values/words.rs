//! Words that stand for values in the file.

use crate::reading::document::suggestion;
use crate::reading::problem::Problem;

/// Declares an enum whose values are words in the file: with `as_str`, [`Display`](std::fmt::Display) and
/// [`FromStr`](std::str::FromStr). The text behind its name is what an unknown word is said not to be.
macro_rules! words {
    ($(#[$about:meta])* $visible:vis enum $name:ident $what:literal {
        $($(#[$meaning:meta])* $value:ident = $word:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visible enum $name {
            $($(#[$meaning])* $value,)+
        }

        impl $name {
            /// The word for it in the file.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::reading::problem::Problem;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::values::words::one_of($what, text, &[$(($word, Self::$value)),+])
            }
        }
    };
}

pub(crate) use words;

/// The value that `words` gives for `text`, or a problem that lists the known words for `key`.
pub(crate) fn one_of<T: Copy>(key: &str, text: &str, words: &[(&str, T)]) -> Result<T, Problem> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(Problem::new(
        format!("there is no {key} \"{}\"", text.escape_debug()),
        suggestion(text, &known),
    ))
}
