//! Constants of `bpf/abi` in messages: the numbers of an enum's values, and single bytes.

/// Defines an enum and its numbers, which are constants of `bpf/abi`.
macro_rules! numbered {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$what:meta])* $value:ident = $number:expr,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$what])* $value = $number,)+
        }

        impl $name {
            /// Its number in a message.
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// The value with this number. `None` if this version knows no such number.
            pub(crate) fn from_number(number: u32) -> Option<Self> {
                [$(Self::$value),+].into_iter().find(|value| value.number() == number)
            }
        }
    };
}

pub(crate) use numbered;

/// A constant of `bpf/abi/lccp.h` that is one byte in a message.
pub(crate) const fn byte(constant: u32) -> u8 {
    assert!(constant <= 0xff);
    constant as u8
}
