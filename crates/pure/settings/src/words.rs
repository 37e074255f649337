//! Enums whose variants are the words of a setting.

/// Declares an enum, and the word by which a setting chooses each variant. The setting is declared
/// as `one_of(Enum::WORDS)`: the first variant is its default.
///
/// ```text
/// words! {
///     pub enum Format {
///         Text = "text",
///         Json = "json",
///     }
/// }
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident {
            $($(#[$of:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Enum {
            $($(#[$of])* $variant,)+
        }

        impl $Enum {
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::FromText for $Enum {
            fn from_text(word: &str) -> core::result::Result<Self, $crate::Wrong> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => unreachable!("{word:?} is none of the words of the setting"),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::FromText as _;

    words! {
        pub enum Format {
            Text = "text",
            Json = "json",
        }
    }

    #[test]
    fn words_choose_variants() {
        assert_eq!(Format::WORDS, ["text", "json"]);
        assert_eq!(Format::from_text("text").unwrap(), Format::Text);
        assert_eq!(Format::from_text("json").unwrap(), Format::Json);
    }
}
