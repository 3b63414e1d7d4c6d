//! `interface` of a node: a name, or a list of names.

use toml::de::DeValue;

use crate::reading::problem::Problem;
use crate::reading::value::{Toml, wrong_type};
use crate::values::name::InterfaceName;

/// The names as the file has them, not checked yet.
pub(crate) struct Names(Vec<String>);

impl Names {
    /// The interfaces in the order of the file; packets of clients come by the first one.
    pub(crate) fn parse(_key: &str, names: Self) -> Result<Vec<InterfaceName>, Problem> {
        let most = baton_abi::MAX_INTERFACES as usize;
        if names.0.is_empty() {
            return Err(Problem::new(
                "this node has no interface",
                "name one, or remove the key: then it is the one that has the node's address",
            ));
        }
        if names.0.len() > most {
            return Err(Problem::new(
                format!("{} interfaces are too many", names.0.len()),
                format!("name at most {most}; several cards can be one interface (a bond)"),
            ));
        }
        let mut interfaces = Vec::new();
        for text in names.0 {
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

impl Toml for Names {
    fn from_toml(key: &str, value: &DeValue<'_>) -> Result<Self, Problem> {
        let names: Result<_, _> = match value {
            DeValue::String(name) => Ok(vec![name.to_string()]),
            DeValue::Array(names) => {
                let names = names
                    .iter()
                    .map(|name| String::from_toml(key, name.get_ref()));
                names.collect()
            }
            other => Err(wrong_type(
                key,
                other,
                "write a name, like \"…\", or a list of them",
            )),
        };
        names.map(Self)
    }
}
