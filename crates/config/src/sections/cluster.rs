//! `[cluster]`: what all nodes have in common.

use std::io;
use std::num::NonZeroU16;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use baton_wire::{HashKey, WindowScale};
use toml::Spanned;

use crate::reading::parsed::Parsed;
use crate::reading::problem::Problem;
use crate::reading::read::{KeyFile, Source};
use crate::reading::report::Report;
use crate::reading::schema::keys;
use crate::reading::value::{plain, value};
use crate::sections::key::{Key, parse_hash_key, parse_key};
use crate::values::duration::{HOUR, MILLISECOND, duration};
use crate::values::number::{Protocol, number};

/// What all nodes have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The key that signs and verifies everything between nodes.
    pub key: Key,
    /// The key before `key`, or the next one. It is accepted but never used for sending.
    pub previous_key: Option<Key>,
    /// The hash key that the file gives. `None`: it comes with the key, see [`Cluster::hash_key`].
    pub given_hash_key: Option<HashKey>,
    /// The IP protocol of messages between nodes.
    pub protocol: Protocol,
    /// The UDP port at which every node accepts streams of the others.
    pub stream_port: NonZeroU16,
    /// The largest difference between a sender's clock and the receiver's, 10 ms to 1 h.
    pub clock_window: Duration,
    /// The TCP window scale that a connection server announces.
    pub window_scale: WindowScale,
    /// The time between two heartbeats, 10 ms to 1 h.
    pub hello: Duration,
    /// The time without a heartbeat after which a node counts as gone; longer than `hello`.
    pub silence: Duration,
}

/// The section, and the places of its keys in the file. `whole::keys` checks later whether the keys fit the nodes.
pub(crate) struct Draft {
    pub(crate) cluster: Cluster,
    pub(crate) key_at: Range<usize>,
    pub(crate) previous_key_at: Option<Range<usize>>,
}

keys! {
    Keys "[cluster]" {
        /// The secret that all nodes share, 64 hex digits. Make one with `openssl rand -hex 32`.
        /// Give either the key itself or a file that holds it (mode 0600). One of the two is required. On a node with
        /// own_keys = true (below) the file holds the keys that `baton key NODE` has made from the secret for this
        /// node, and the secret itself is not on that node.
        key: String = plain, example "…";
        key_file: String = plain, sample "/etc/baton/cluster.key";
        /// The previous key is also accepted, but never used for sending. To rotate the key without a lost packet, give
        /// every node the new key here, then swap the two keys on every node, then remove the old one.
        previous_key: String = plain, example "…";
        previous_key_file: String = plain, example "/etc/baton/cluster.previous.key";
        /// The key of the hashes that choose data servers by path or client, and of those that identify large files: 32
        /// hex digits, the same on every node. Make one with `openssl rand -hex 16`.
        /// By default it is made from the key above. Then a rotation gives every path and client another data server,
        /// and a switch sends the packets of connections to other connection servers, which have to ask who has them.
        /// With a hash key of its own, a rotation changes none of that. `baton key` gives the hash key to nodes with
        /// own_keys, which do not need this file.
        hash_key: String = plain, example "…";
        hash_key_file: String = plain, example "/etc/baton/hash.key";
        /// The IP protocol number of the messages between nodes (LCCP). 253 is for experiments (RFC 3692).
        protocol: Protocol = value(Protocol::parse), default 253;
        /// The UDP port at which every node, at its own address, takes streams from other nodes: lists that are too
        /// long for a message. They are encrypted (QUIC), under a key that two nodes share. The port is the same on
        /// every node, and firewalls between nodes must let it through.
        stream_port: NonZeroU16 = number(1..=u16::MAX), default 7728;
        /// Messages whose sender's clock differs by more than this are dropped. NTP keeps clocks close enough;
        /// `baton status` names a node whose clock is off.
        clock_window: Duration = duration(10 * MILLISECOND..=HOUR), default "10s";
        /// The TCP window scale that the connection server announces to every client, 0-14.
        /// 7 lets a server announce up to 8 MiB.
        window_scale: WindowScale = number(0..=WindowScale::MAX), default 7;
        /// How often nodes say hello, and how long a silence means that a node is gone.
        hello: Duration = duration(10 * MILLISECOND..=HOUR), default "200ms";
        silence: Duration = duration(10 * MILLISECOND..=HOUR), default "1s";
    }
}

/// What reads a key file.
pub(crate) type KeyFiles<'a> = &'a dyn Fn(&Path) -> io::Result<KeyFile>;

impl Cluster {
    /// The key of the hashes of paths and clients, the same at all nodes: the hash key that the file gives, or else
    /// the one that belongs to the current key.
    pub fn hash_key(&self) -> HashKey {
        self.given_hash_key.unwrap_or_else(|| self.key.hash_key())
    }
}

impl Keys {
    /// The section, if all of it could be read. Reads the key files that it names.
    pub(crate) fn finish(
        self,
        report: &mut Report<'_>,
        source: Source<'_>,
        files: KeyFiles<'_>,
    ) -> Option<Draft> {
        self.check(report);
        let current = KEY.read(report, &self.key, &self.key_file, source, files);
        let (inline, file) = (&self.previous_key, &self.previous_key_file);
        let previous = PREVIOUS_KEY.read(report, inline, file, source, files);
        let hash_key = self.hash_key(report, current.get(), source, files);
        if current.is_absent() {
            report.error(
                self.at,
                "[cluster] has no key",
                "add key_file = \"/etc/baton/cluster.key\"; make the file with: \
                 (umask 077; openssl rand -hex 32 > /etc/baton/cluster.key)",
            );
        }
        if let (Some(current), Some(previous)) = (current.get(), previous.given())
            && current == previous.get_ref()
        {
            let what = "the previous key is the current key";
            report.warning(previous.span(), what, "remove it");
        }
        Some(Draft {
            key_at: current.span()?,
            previous_key_at: previous.span(),
            cluster: Cluster {
                key: current.value()?,
                previous_key: previous.optional()?,
                given_hash_key: hash_key.optional()?,
                protocol: self.protocol.value()?,
                stream_port: self.stream_port.value()?,
                clock_window: self.clock_window.value()?,
                window_scale: self.window_scale.value()?,
                hello: self.hello.value()?,
                silence: self.silence.value()?,
            },
        })
    }

    /// Reports a silence that is no longer than the time between two hellos.
    fn check(&self, report: &mut Report<'_>) {
        if let (Some(hello), Some(silence)) = (self.hello.get(), self.silence.get())
            && hello >= silence
        {
            let [hello, silence] = [*hello, *silence].map(humantime::format_duration);
            report.error(
                self.silence.span().or(self.hello.span()),
                format!("hello ({hello}) is not shorter than silence ({silence})"),
                "choose a silence of several hellos, so that a lost one does not count as a death",
            );
        }
    }

    /// The hash key that the file gives. A node with only its own keys has the hash key among them. There
    /// `hash_key_file` is not read, because the node need not have that file, and a `hash_key` in the configuration
    /// must be the same.
    fn hash_key(
        &self,
        report: &mut Report<'_>,
        current: Option<&Key>,
        source: Source<'_>,
        files: KeyFiles<'_>,
    ) -> Parsed<HashKey> {
        let file = match current {
            Some(Key::Node(_)) if self.hash_key.is_absent() => &Parsed::Absent,
            _ => &self.hash_key_file,
        };
        let given = HASH_KEY.read(report, &self.hash_key, file, source, files);
        if let (Some(Key::Node(own)), Some(given)) = (current, given.given())
            && own.hash_key != *given.get_ref()
        {
            report.error(
                given.span(),
                "the node's keys have another hash key than this one",
                "make them anew where the secret is: baton key NODE",
            );
            return Parsed::Wrong;
        }
        given
    }
}

/// A key of this section, how it is parsed, and the remedy if its file cannot be read.
struct Form<K> {
    name: &'static str,
    parse: fn(&str) -> Result<K, Problem>,
    make: &'static str,
}

const KEY: Form<Key> = Form {
    name: "key",
    parse: parse_key,
    make: "make it with: (umask 077; openssl rand -hex 32 > FILE), the same on every node, or with: baton key NODE",
};

const PREVIOUS_KEY: Form<Key> = Form {
    name: "previous_key",
    ..KEY
};

const HASH_KEY: Form<HashKey> = Form {
    name: "hash_key",
    parse: parse_hash_key,
    make: "make it with: (umask 077; openssl rand -hex 16 > FILE), the same on every node that has the secret",
};

impl<K> Form<K> {
    /// The key, which is given either in the configuration itself or in a file of its own.
    fn read(
        &self,
        report: &mut Report<'_>,
        inline: &Parsed<String>,
        file: &Parsed<String>,
        source: Source<'_>,
        files: KeyFiles<'_>,
    ) -> Parsed<K> {
        let (at, key, path, mode) = match (inline, file) {
            (Parsed::Given(_), Parsed::Given(file)) => {
                let what = format!("{0} and {0}_file are both given", self.name);
                report.error(file.span(), what, "remove one of the two");
                return Parsed::Wrong;
            }
            (Parsed::Given(text), _) => {
                let key = (self.parse)(text.get_ref());
                (text.span(), key, source.path.to_owned(), source.mode)
            }
            (_, Parsed::Given(file)) => {
                let path = source
                    .path
                    .parent()
                    .unwrap_or(Path::new(""))
                    .join(file.get_ref());
                let shown = path.display();
                let (key, mode) = match files(&path) {
                    Ok(file) => ((self.parse)(&file.text), Some(file.mode)),
                    Err(error) => {
                        let what = format!("cannot read the key file {shown}: {error}");
                        report.error(file.span(), what, self.make);
                        return Parsed::Wrong;
                    }
                };
                let named =
                    |wrong: Problem| Problem::new(format!("{shown}: {}", wrong.what), wrong.remedy);
                (file.span(), key.map_err(named), path, mode)
            }
            (Parsed::Wrong, _) | (_, Parsed::Wrong) => return Parsed::Wrong,
            _ => return Parsed::Absent,
        };
        let Some(key) = report.good(at.clone(), key) else {
            return Parsed::Wrong;
        };
        if let Some(mode) = mode.filter(|mode| mode & 0o077 != 0) {
            let path = path.display();
            let what = format!("{path} holds the key, and others may open it (mode {mode:04o})");
            report.warning(at.clone(), what, format!("chmod 600 {path}"));
        }
        Parsed::Given(Spanned::new(at, key))
    }
}
