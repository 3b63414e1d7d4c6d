//! `baton key`: the keys of one node, made from the cluster's secret.

use std::{io::Write as _, process::ExitCode};

use anyhow::{Context, Result, bail};
use baton_config::{Config, NodeKeys};
use clap::Args;

use super::ConfigFile;

/// Make a node's own keys from the cluster's secret, for its key_file.
#[derive(Args)]
pub struct KeyVerb {
    /// The node, by its name in the configuration
    node: String,
    /// From the previous secret instead: for the node's previous_key_file
    #[arg(long)]
    previous: bool,
    #[command(flatten)]
    config: ConfigFile,
}

impl KeyVerb {
    /// Writes them to the standard output.
    pub fn run(self) -> Result<ExitCode> {
        let config = Config::read(&self.config.config)?.config;
        let keys = keys_of(&config, &self.node, self.previous)?;
        std::io::stdout()
            .write_all(keys.text(&config.nodes).as_bytes())
            .context("cannot write the keys")?;
        Ok(ExitCode::SUCCESS)
    }
}

fn keys_of(config: &Config, name: &str, previous: bool) -> Result<NodeKeys> {
    let cluster = &config.cluster;
    let key = if previous {
        let key = cluster.previous_key.as_ref();
        key.context("the configuration has no previous key: leave --previous out")?
    } else {
        &cluster.key
    };
    let secret = key.secret().context(
        "a node's keys are made from the cluster's secret, and this machine has only keys of its own: run this where \
         the secret is, as on a connection server",
    )?;
    let Some(node) = config.node_named(name) else {
        let known: Vec<_> = config.nodes.iter().map(|node| node.name.as_str()).collect();
        bail!(
            "no [[node]] is called {name:?} (there are: {})",
            known.join(", ")
        );
    };
    if !node.own_keys {
        bail!(
            "{name} is to have the secret: its [[node]] does not say own_keys = true, and other nodes would take its \
             commands; write that in the file of every node first"
        );
    }
    let address = |node: &baton_config::Node| {
        let found = node.address.ipv4();
        found.with_context(|| {
            format!(
                "node {}: its address must be IPv4 in this version",
                node.name
            )
        })
    };
    let all = config
        .nodes
        .iter()
        .map(address)
        .collect::<Result<Vec<_>>>()?;
    Ok(NodeKeys::new(secret, address(node)?, all))
}

#[cfg(test)]
mod tests {
    use baton_config::Key;

    use super::*;
    use crate::doctor::subject::tests::config;

    fn with_own_keys(name: &str) -> Config {
        let mut config = config();
        let node = config
            .nodes
            .iter_mut()
            .find(|node| node.name.as_str() == name);
        node.expect("of the small cluster").own_keys = true;
        config
    }

    #[test]
    fn a_key_for_every_node_of_the_cluster() {
        let config = with_own_keys("ds1");
        let keys = keys_of(&config, "ds1", false).expect("of the small cluster");
        let own = config
            .node_named("ds1")
            .expect("of the small cluster")
            .address
            .ipv4()
            .expect("of the small cluster");
        assert_eq!(keys.node, own);
        for node in &config.nodes {
            let other = node.address.ipv4().expect("of the small cluster");
            assert_eq!(keys.with(other), config.cluster.key.pair(own, other));
        }
    }

    #[test]
    fn who_gets_none_is_told_why() {
        let mut config = with_own_keys("ds1");
        let said = |config: &Config, name, previous| {
            keys_of(config, name, previous)
                .expect_err("refused")
                .to_string()
        };
        assert!(said(&config, "ds9", false).contains("there are: "));
        assert!(said(&config, "cs1", false).contains("own_keys = true"));
        assert!(said(&config, "ds1", true).contains("no previous key"));
        config.cluster.key =
            Key::Node(keys_of(&config, "ds1", false).expect("of the small cluster"));
        assert!(said(&config, "ds1", false).contains("only keys of its own"));
    }
}
