//! Enums whose values have a stored name, and nothing else.

/// Gives an enum its names, and what follows from them: text, reading and serde.
///
/// Names are read in any case, and `-` stands for `_`, so that people can type them.
macro_rules! words {
    ($name:ident, $field:literal, { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name, in capitals, as it is stored and shown.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::invalid::InvalidInput;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let word = text.replace('-', "_");
                Self::ALL.iter().copied().find(|value| value.as_str().eq_ignore_ascii_case(&word)).ok_or_else(|| {
                    let known = [$($word),+].join(", ");
                    crate::invalid::InvalidInput::new($field, format!("is {text:?}; use one of {known}"))
                })
            }
        }
    };
}

pub(super) use words;
