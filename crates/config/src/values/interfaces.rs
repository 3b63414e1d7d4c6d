//! `interface` of a node: a name, or a list of names.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::reading::problem::Problem;
use crate::values::name::InterfaceName;

/// The names as the file has them, not checked yet.
pub(crate) struct Names(Vec<String>);

impl Names {
    /// The interfaces in the order of the file; packets of clients come by the first one.
    pub(crate) fn parse(self) -> Result<Vec<InterfaceName>, Problem> {
        let most = baton_abi::MAX_INTERFACES as usize;
        if self.0.is_empty() {
            return Err(Problem::new(
                "this node has no interface",
                "name one, or remove the key: then it is the one that has the node's address",
            ));
        }
        if self.0.len() > most {
            return Err(Problem::new(
                format!("{} interfaces are too many", self.0.len()),
                format!("name at most {most}; several cards can be one interface (a bond)"),
            ));
        }
        let mut interfaces = Vec::new();
        for text in self.0 {
            let name: InterfaceName = text.parse()?;
            if interfaces.contains(&name) {
                return Err(Problem::new(
                    format!("the interface {name} is listed twice"),
                    "list each interface once",
                ));
            }
            interfaces.push(name);
        }
        Ok(interfaces)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrSeveral)
    }
}

struct OneOrSeveral;

impl<'de> Visitor<'de> for OneOrSeveral {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a list of names")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Names, E> {
        Ok(Names(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Names, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Names)
    }
}
