//! `weights`: the weights that nodes have in one service or pool, in place of their own.

use std::collections::BTreeMap;

use crate::reading::problem::Problem;
use crate::values::name::NodeName;
use crate::values::number::in_range;

/// Weights by node. A node that is not named keeps its own weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights(BTreeMap<NodeName, u8>);

impl Weights {
    /// The weight of a node; `None` if it keeps its own weight.
    pub fn of(&self, node: &str) -> Option<u8> {
        let (_, weight) = self.0.iter().find(|(name, _)| name.as_str() == node)?;
        Some(*weight)
    }

    /// The nodes that have a weight here.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.0.keys()
    }

    /// Converts the table of the file.
    pub(crate) fn parse(_key: &str, raw: BTreeMap<String, i64>) -> Result<Self, Problem> {
        let weight = |(name, weight): (String, i64)| {
            let weight = in_range(&format!("the weight of {name}"), weight, &(0..=u8::MAX))?;
            Ok((name.parse()?, weight))
        };
        Ok(Self(raw.into_iter().map(weight).collect::<Result<_, _>>()?))
    }
}
