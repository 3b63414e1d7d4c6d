//! Checks the configuration, and finds this machine in it.

use std::path::Path;

use baton_config::{Config, Error, Key, Loaded, Node};

use super::{
    finding::Finding,
    subject::{Placed, Subject},
};

/// Reads the configuration and finds this machine in it. A node does not start if its configuration is wrong or does
/// not name its machine.
pub fn check(file: &Path) -> (Vec<Finding>, Subject) {
    let host_name = nix::unistd::gethostname().unwrap_or_default();
    judge(file, Config::read(file), &host_name.to_string_lossy())
}

fn judge(file: &Path, loaded: Result<Loaded, Error>, host_name: &str) -> (Vec<Finding>, Subject) {
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => return (vec![bad(&error)], Subject::unknown()),
    };
    let config = loaded.config;
    let mut findings = vec![good(file, &config, &loaded.warnings)];
    match config.this_node(host_name).cloned() {
        Ok(me) => {
            let named = [
                (me.roles.is_cs(), "connection server"),
                (me.roles.is_ds(), "data server"),
                (me.roles.is_dispatcher(), "dispatcher"),
                (me.roles.is_switch(), "switch"),
                (me.roles.is_io(), "I/O server"),
                (me.roles.is_app(), "application node"),
            ];
            let has = named.iter().filter(|(has, _)| *has);
            let roles = has.map(|(_, name)| *name).collect::<Vec<_>>().join(" and ");
            findings.push(Finding::good("this_node", format!("{}, {roles}", me.name)));
            findings.extend(keys(&config, &me));
            let file = file.to_owned();
            (findings, Subject::placed(Placed { file, config, me }))
        }
        Err(error) => {
            let (found, help) = parts(&error.to_string());
            let why = "A node has to find itself in the configuration that all share:";
            findings.push(Finding::bad("this_node", found, format!("{why} {help}.")));
            (findings, Subject::of(&config))
        }
    }
}

/// Says which keys this node has. Returns `None` if it has the cluster's secret and is meant to have it.
fn keys(config: &Config, me: &Node) -> Option<Finding> {
    match (&config.cluster.key, me.own_keys) {
        (Key::Node(_), _) => Some(Finding::good(
            "keys",
            "its own keys, and not the cluster's secret",
        )),
        (Key::Secret(_), true) => Some(Finding::advice(
            "keys",
            format!(
                "{} is to have only its own keys, and has the cluster's secret",
                me.name
            ),
            format!(
                "Who gets hold of this machine can speak for all nodes. Where the secret is, make its keys with \
                 `baton key {}`, put them in place of the secret here, and reload.",
                me.name
            ),
        )),
        (Key::Secret(_), false) => None,
    }
}

const NAME: &str = "config";

fn good(file: &Path, config: &Config, warnings: &[baton_config::Diagnostic]) -> Finding {
    let found = format!(
        "{}: {} node(s), {} service(s)",
        file.display(),
        config.nodes.len(),
        config.services.len()
    );
    if warnings.is_empty() {
        return Finding::good(NAME, found);
    }
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    Finding::advice(
        NAME,
        format!("{found}\n{}", warnings.join("\n")),
        "It works, but some of it may not be what was meant: see above.",
    )
}

fn bad(error: &Error) -> Finding {
    Finding::bad(
        NAME,
        error.to_string(),
        "A node does not start with a configuration that is wrong: mend what is listed, and look again \
         with `baton check`. All other findings are about a node of any role, with defaults.",
    )
}

/// Splits an error of the form "what\n  help: what to do" at its help.
fn parts(error: &str) -> (String, String) {
    let (found, help) = error
        .split_once("\n  help: ")
        .unwrap_or((error, "see above"));
    (found.to_owned(), help.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        finding::Verdict::{Advice, Bad, Good},
        subject::tests::config,
    };

    fn judged(host_name: &str) -> (Vec<Finding>, Subject) {
        let loaded = Loaded {
            config: config(),
            warnings: Vec::new(),
        };
        judge(Path::new("baton.toml"), Ok(loaded), host_name)
    }

    #[test]
    fn a_node_of_the_cluster() {
        let (findings, subject) = judged("ds1");
        let verdicts: Vec<_> = findings.iter().map(Finding::verdict).collect();
        assert_eq!(verdicts, [Good, Good]);
        assert_eq!(findings[1].found(), "ds1, data server");
        assert!(subject.placed.is_some() && !subject.roles.is_cs());
    }

    #[test]
    fn a_node_that_has_more_than_its_own_keys() {
        let mut config = config();
        let ds1 = config.nodes.iter_mut();
        ds1.filter(|node| node.name.as_str() == "ds1")
            .for_each(|node| node.own_keys = true);
        let me = config.node_named("ds1").cloned().expect("a node");
        let found = keys(&config, &me).expect("a finding");
        assert_eq!(found.verdict(), Advice);
        assert!(found.found().contains("has the cluster's secret"));
        let address = me.address.ipv4().expect("IPv4");
        let secret = config.cluster.key.secret().expect("the secret");
        config.cluster.key = Key::Node(baton_config::NodeKeys::new(secret, None, address, []));
        assert_eq!(keys(&config, &me).expect("a finding").verdict(), Good);
    }

    #[test]
    fn a_stranger() {
        let (findings, subject) = judged("elsewhere");
        let verdicts: Vec<_> = findings.iter().map(Finding::verdict).collect();
        assert_eq!(verdicts, [Good, Bad]);
        assert!(findings[1].found().contains("elsewhere"));
        assert!(subject.placed.is_none() && subject.roles.is_cs());
    }

    #[test]
    fn no_configuration() {
        let (findings, subject) = check(Path::new("/no/such/file.toml"));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].verdict(), Bad);
        assert!(findings[0].found().contains("/no/such/file.toml"));
        assert!(subject.placed.is_none());
    }
}
