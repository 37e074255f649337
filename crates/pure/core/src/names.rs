//! Enums whose variants have names.

/// Declares an enum and the names by which addresses, files and databases know its variants. It
/// gets `ALL`, in the order of the variants, `name` and `from_name`.
#[macro_export]
macro_rules! names {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Enum:ident {
            $($(#[$of:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Enum {
            $($(#[$of])* $variant,)+
        }

        impl $Enum {
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            $vis fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.name() == name)
            }
        }
    };
}
