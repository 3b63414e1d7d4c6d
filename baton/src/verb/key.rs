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
    /// Make them from the previous secret, for the node's previous_key_file
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
    let hash_key = cluster.given_hash_key;
    Ok(NodeKeys::new(secret, hash_key, address(node)?, all))
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
        assert_eq!(keys.hash_key, config.cluster.hash_key());
    }

    /// Of a secret that is the next one, or was the last one, the keys have the hash key that goes with it there.
    #[test]
    fn the_hash_key_is_the_one_given_or_of_the_same_secret() {
        let mut config = with_own_keys("ds1");
        let next = baton_wire::ClusterKey::from_bytes([9; 32]).expect("not zero");
        config.cluster.previous_key = Some(Key::Secret(next.clone()));
        let hash_key = |config: &Config, previous| {
            let keys = keys_of(config, "ds1", previous);
            keys.expect("of the small cluster").hash_key
        };
        assert_eq!(hash_key(&config, true), next.hash_key());
        let given = baton_wire::HashKey::from_words([1, 2]);
        config.cluster.given_hash_key = Some(given);
        assert_eq!(
            [true, false].map(|previous| hash_key(&config, previous)),
            [given; 2]
        );
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
