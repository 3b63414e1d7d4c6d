//! Warnings about nodes that speak another version of LCCP.

use baton_abi::LCCP_VERSION;

use super::Status;

impl Status {
    /// One line for each node that speaks another version of LCCP than this one.
    pub fn version_warnings(&self) -> Vec<String> {
        let other = self.nodes.iter().filter_map(|peer| {
            let words = speaks(peer.lccp_version?);
            Some(format!("version: {} {words}", peer.name))
        });
        other.collect()
    }
}

/// Says what it means that another node speaks this version of LCCP.
pub fn speaks(version: u8) -> String {
    format!(
        "speaks version {version} of LCCP, and this node {LCCP_VERSION}: they do not understand each other; give both the same release of baton"
    )
}

#[cfg(test)]
mod tests {
    use baton_abi::LCCP_VERSION;

    use crate::status::example;

    #[test]
    fn who_speaks_what() {
        let mut status = example();
        assert!(status.version_warnings().is_empty());
        status.nodes[1].lccp_version = Some(9);
        let line =
            format!("\nversion: ds1 speaks version 9 of LCCP, and this node {LCCP_VERSION}: they");
        assert!(status.to_string().contains(&line));
    }
}
