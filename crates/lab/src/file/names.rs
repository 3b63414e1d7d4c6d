//! The names in a lab file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest name of a host. It becomes an interface name, for which `IFNAMSIZ` (linux/if.h) leaves 15 bytes.
const HOST_NAME_BYTES: usize = 15;
/// The longest name of a LAN. It leaves room for `lan.` in front in an interface name.
const LAN_NAME_BYTES: usize = 11;
/// The longest name of a lab. It leaves room for paths of Unix sockets in the state directory (108 bytes, unix(7)).
const LAB_NAME_BYTES: usize = 32;

/// The name of the lab's own host, the bridge that joins the others.
pub const BRIDGE: &str = "bridge";

/// Defines the types of names. Each is made from text only by its rule, which says what is wrong with other text.
macro_rules! names {
    ($($(#[$attribute:meta])* $name:ident: $rule:expr;)+) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(name: String) -> Result<Self, String> {
                let rule: fn(&str) -> Result<(), String> = $rule;
                rule(&name)?;
                Ok($name(name))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

names! {
    /// A lab's name: `a-z`, then `a-z 0-9 -`, at most 32 bytes.
    LabName: |name| plain_name("the lab's name", name, LAB_NAME_BYTES);
    /// A host's name, also that of its port on the bridge: `a-z`, then `a-z 0-9 -`, at most 15 bytes.
    HostName: host_name;
    /// A LAN's name: `a-z`, then `a-z 0-9 -`, at most 11 bytes.
    LanName: |name| plain_name("a LAN's name", name, LAN_NAME_BYTES);
    /// The name of something that runs on a host (its log is NAME.log): `a-z A-Z 0-9 . _ -`.
    ThingName: thing_name;
}

fn host_name(name: &str) -> Result<(), String> {
    plain_name("a host's name", name, HOST_NAME_BYTES)?;
    match name {
        BRIDGE => Err(
            "`bridge` is the lab's own host, the bridge between the others: choose another name"
                .to_owned(),
        ),
        // The bridge has these interfaces itself, in the same namespace as the ports that have hosts' names.
        "lo" | "br0" => Err(format!(
            "`{name}` is the name of an interface of the bridge: choose another name"
        )),
        _ => Ok(()),
    }
}

fn thing_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(fits) {
        return Err(format!(
            "{name:?} cannot name what runs on a host: use 1 to 64 of a-z A-Z 0-9 . _ -"
        ));
    }
    Ok(())
}

fn plain_name(whose: &str, name: &str, longest: usize) -> Result<(), String> {
    if name.len() > longest {
        return Err(format!(
            "{name:?} has {} bytes, and {whose} has room for {longest}: shorten it",
            name.len()
        ));
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(fits) {
        return Err(format!(
            "{name:?} cannot be {whose}: use a-z, then a-z, 0-9 and -"
        ));
    }
    Ok(())
}
