//! The nodes of a pool.

use std::ops::Deref;

use crate::values::name::NodeName;

/// At least one node, each once and each a data server, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Vec<NodeName>);

impl Members {
    /// Whoever calls has seen to it that each is a data server and there but once. `None` if there
    /// is none.
    pub(crate) fn new(nodes: Vec<NodeName>) -> Option<Self> {
        (!nodes.is_empty()).then_some(Self(nodes))
    }
}

impl Deref for Members {
    type Target = [NodeName];

    fn deref(&self) -> &[NodeName] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Members {
    type Item = &'a NodeName;
    type IntoIter = std::slice::Iter<'a, NodeName>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
