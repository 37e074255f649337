//! Declarations of settings.

/// Environment variables begin with this name and two underscores.
pub const PROGRAM: &str = "RAINGAUGE";

/// One setting: its values, its default and its purpose.
#[derive(Debug)]
pub struct Setting {
    pub section: &'static str,
    pub name: &'static str,
    pub kind: Kind,
    /// One sentence, the same in the documentation and in the advice of a problem.
    pub text: &'static str,
}

/// The values of a setting, with its default.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number of `unit`, with inclusive limits.
    Whole { default: u64, min: u64, max: u64, unit: &'static str },
    /// `HOST:PORT`, where the host is an IP address or `localhost`.
    Address { default: &'static str },
    /// The same, or empty, which is the default.
    OptionalAddress,
    /// A folder; relative paths start from the working folder of the process.
    Folder { default: &'static str },
    /// One of a few words.
    OneOf { default: &'static str, words: &'static [&'static str] },
    /// Any text. A secret is never quoted.
    Text { default: &'static str, is_secret: bool },
    /// Yes or no.
    Switch { default: bool },
    /// A list of tables; empty by default.
    Tables,
}

impl Setting {
    /// Returns `section.name`, as problems and the documentation write it.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// Returns the environment variable that overrides this setting.
    pub fn variable(&self) -> String {
        format!("{PROGRAM}__{}__{}", self.section, self.name).to_uppercase()
    }

    /// Whether messages and logs must not contain the value.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Text { is_secret: true, .. })
    }
}

/// Kinds of settings, as declarations write them.
pub mod kinds {
    use super::Kind;
    use core::ops::RangeInclusive;

    pub const KIB: u64 = 1 << 10;
    pub const MIB: u64 = 1 << 20;
    pub const GIB: u64 = 1 << 30;
    pub const TIB: u64 = 1 << 40;

    /// A whole number of any unit.
    pub const fn whole(default: u64, range: RangeInclusive<u64>, unit: &'static str) -> Kind {
        Kind::Whole { default, min: *range.start(), max: *range.end(), unit }
    }

    pub const fn bytes(default: u64, range: RangeInclusive<u64>) -> Kind {
        whole(default, range, "bytes")
    }

    pub const fn millis(default: u64, range: RangeInclusive<u64>) -> Kind {
        whole(default, range, "milliseconds")
    }

    pub const fn seconds(default: u64, range: RangeInclusive<u64>) -> Kind {
        whole(default, range, "seconds")
    }

    pub const fn minutes(default: u64, range: RangeInclusive<u64>) -> Kind {
        whole(default, range, "minutes")
    }

    pub const fn hours(default: u64, range: RangeInclusive<u64>) -> Kind {
        whole(default, range, "hours")
    }

    pub const fn days(default: u64, range: RangeInclusive<u64>) -> Kind {
        whole(default, range, "days")
    }

    /// An address and a port; any address may be left out if the default is empty.
    pub const fn address(default: &'static str) -> Kind {
        if default.is_empty() { Kind::OptionalAddress } else { Kind::Address { default } }
    }

    pub const fn folder(default: &'static str) -> Kind {
        Kind::Folder { default }
    }

    /// One of these words, the first by default.
    pub const fn one_of(words: &'static [&'static str]) -> Kind {
        word(words[0], words)
    }

    /// One of these words.
    pub const fn word(default: &'static str, words: &'static [&'static str]) -> Kind {
        Kind::OneOf { default, words }
    }

    pub const fn text(default: &'static str) -> Kind {
        Kind::Text { default, is_secret: false }
    }

    pub const fn secret() -> Kind {
        Kind::Text { default: "", is_secret: true }
    }

    pub const fn switch(default: bool) -> Kind {
        Kind::Switch { default }
    }

    pub const fn tables() -> Kind {
        Kind::Tables
    }
}

/// Declares the settings of a component as a struct, whose doc comments are the texts of the
/// settings. It gets a `GROUP`, `read`, `Default`, and a `Debug` that hides secrets.
///
/// ```text
/// settings! {
///     /// How events wait.
///     pub struct Options in "queue" checked by Options::check {
///         /// Longest time that an event waits.
///         wait_max as "wait_max_ms": core::time::Duration = millis(500, 1..=60_000);
///         /// Most bytes of events that wait.
///         bytes_max: usize = bytes(64 * MIB, MIB..=GIB);
///     } with {
///         is_small: bool = false;
///     }
/// }
///
/// impl Options {
///     fn check(&mut self, _: &mut Reader) {
///         self.is_small = self.bytes_max < 1 << 22;
///     }
/// }
/// ```
///
/// A setting has the name of its field, or the one behind `as`. The fields behind `with` are no
/// settings. The function behind `checked by` compares settings with each other, and derives such
/// fields.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $Struct:ident in $section:literal $(checked by $check:path)? {
            $(
                $(#[doc = $text:literal])+
                $field:ident $(as $name:literal)?: $Type:ty = $kind:expr;
            )+
        }
        $(with {
            $( $(#[$extra_meta:meta])* $extra:ident: $ExtraType:ty = $value:expr; )+
        })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $Struct {
            $( $(#[doc = $text])+ pub $field: $Type, )+
            $($( $(#[$extra_meta])* pub $extra: $ExtraType, )+)?
        }

        impl $Struct {
            const SETTINGS: &'static [$crate::Setting; [$(stringify!($field)),+].len()] = {
                #[allow(unused_imports)]
                use $crate::kinds::*;
                &[$($crate::Setting {
                    section: $section,
                    name: $crate::settings!(@name $field $($name)?),
                    kind: $kind,
                    text: concat!($($text),+).trim_ascii_start(),
                }),+]
            };

            pub const GROUP: $crate::Group = $crate::Group {
                settings: Self::SETTINGS,
                check: |reader| {
                    Self::read(reader);
                },
            };

            pub fn read(reader: &mut $crate::Reader) -> Self {
                let [$($field),+] = Self::SETTINGS;
                #[allow(unused_mut)]
                let mut read = Self {
                    $( $field: reader.value($field), )+
                    $($( $extra: $value, )+)?
                };
                $( $check(&mut read, reader); )?
                read
            }
        }

        impl Default for $Struct {
            fn default() -> Self {
                Self::read(&mut $crate::Reader::default())
            }
        }

        impl core::fmt::Debug for $Struct {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut shown = out.debug_struct(stringify!($Struct));
                let [$($field),+] = Self::SETTINGS;
                $(
                    if !$field.is_secret() {
                        shown.field(stringify!($field), &self.$field);
                    }
                )+
                shown.finish_non_exhaustive()
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}

/// Composes the settings of components: a struct with a field for each of them, and the `GROUPS` of
/// them all, in the order of the documentation. The fields behind `with` are no settings.
#[macro_export]
macro_rules! compose {
    (
        $(#[$meta:meta])*
        pub struct $Struct:ident {
            $( $(#[$condition:meta])* $field:ident: $Type:ty, )+
        }
        with { $( $extra:ident: $ExtraType:ty = $value:expr, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Struct {
            $( $(#[$condition])* pub $field: $Type, )+
            $( pub $extra: $ExtraType, )+
        }

        impl $Struct {
            pub const GROUPS: &'static [$crate::Group] =
                &[$( $(#[$condition])* <$Type>::GROUP, )+];

            fn read(reader: &mut $crate::Reader) -> Self {
                Self {
                    $( $(#[$condition])* $field: <$Type>::read(reader), )+
                    $( $extra: $value, )+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::Reader;
    use std::time::Duration;

    settings! {
        /// How events wait.
        pub struct Options in "queue" checked by Options::check {
            /// Longest time that an event waits.
            wait_max as "wait_max_ms": Duration = millis(500, 1..=60_000);
            /// Most bytes of events that wait.
            bytes_max: usize = bytes(64 * MIB, MIB..=GIB);
        } with {
            is_small: bool = false;
        }
    }

    impl Options {
        fn check(&mut self, _: &mut Reader) {
            self.is_small = self.bytes_max < 1 << 22;
        }
    }

    #[test]
    fn a_declaration_names_settings_and_their_defaults() {
        let options = Options::default();
        assert_eq!(options.wait_max.as_millis(), 500);
        assert_eq!(options.bytes_max, 64 << 20);
        assert!(!options.is_small);

        let paths = Options::GROUP.settings.iter().map(|setting| setting.path());
        assert_eq!(paths.collect::<Vec<_>>(), ["queue.wait_max_ms", "queue.bytes_max"]);
    }
}
