//! A list of nodes that serve together.

use std::ops::Deref;

use crate::values::name::NodeName;

/// At least one node, each once, in the order of the file: data servers of a service or pool, or the
/// connection servers of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Vec<NodeName>);

impl Members {
    /// Makes the list; `None` if it is empty. The caller ensures that each node exists, has the right role
    /// and is listed once.
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
