//! `[cluster]`: what all nodes have in common.

use std::io;
use std::num::NonZeroU16;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::Duration;

use baton_wire::{HashKey, WindowScale};
use toml::Spanned;

use crate::reading::field::{Field, Parsed, parse};
use crate::reading::problem::Problem;
use crate::reading::raw::RawCluster;
use crate::reading::read::{KeyFile, Source};
use crate::reading::report::Report;
use crate::sections::key::{Key, parse_hash_key, parse_key};
use crate::values::duration;
use crate::values::number::{Protocol, in_range};

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

/// The default port. It is not registered, and no common daemon uses it.
const STREAM_PORT: NonZeroU16 = NonZeroU16::new(7728).expect("it is not 0");

/// The default scale, with which a server can announce a window of up to 8 MiB.
const SCALE: u8 = 7;

const SPAN: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);

impl Cluster {
    /// The key of the hashes of paths and clients, the same at all nodes: the hash key that the file gives, or else
    /// the one that belongs to the current key.
    pub fn hash_key(&self) -> HashKey {
        self.given_hash_key.unwrap_or_else(|| self.key.hash_key())
    }

    /// Parses the section. `None` if a value is wrong, which has been reported.
    pub(crate) fn parse(
        report: &mut Report<'_>,
        raw: Spanned<RawCluster>,
        source: Source<'_>,
        keys: &impl Fn(&Path) -> io::Result<KeyFile>,
    ) -> Option<Draft> {
        let header = raw.span();
        let raw = raw.into_inner();
        let current = key(report, &KEY, "key", raw.key, raw.key_file, source, keys);
        let current = current.required(report, header, || {
            Problem::new(
                "[cluster] has no key",
                "add key_file = \"/etc/baton/cluster.key\"; make the file with: \
                 (umask 077; openssl rand -hex 32 > /etc/baton/cluster.key)",
            )
        });
        let previous = {
            let (inline, file) = (raw.previous_key, raw.previous_key_file);
            key(report, &KEY, "previous_key", inline, file, source, keys)
        };
        let hash_key = {
            let current = current.as_ref().map(Spanned::get_ref);
            let (inline, file) = (raw.hash_key, raw.hash_key_file);
            hash_key(report, current, inline, file, source, keys)
        };
        if let (Some(current), Parsed::Right(previous)) = (&current, &previous)
            && current.get_ref() == previous.get_ref()
        {
            report.warning(
                previous.span(),
                Problem::new("the previous key is the current key", "remove it"),
            );
        }

        let clock_window = duration::field(report, "clock_window", raw.clock_window, SPAN);
        let hello = duration::field(report, "hello", raw.hello, SPAN);
        let silence = duration::field(report, "silence", raw.silence, SPAN);
        let at = silence.span().or(hello.span());
        let (hello, silence) = (
            hello.or(Duration::from_millis(200)),
            silence.or(Duration::from_secs(1)),
        );
        if let (Some(hello), Some(silence)) = (hello, silence)
            && hello >= silence
        {
            let show = humantime::format_duration;
            report.error(
                at,
                Problem::new(
                    format!("hello ({}) is not shorter than silence ({})", show(hello), show(silence)),
                    "choose a silence of several hellos, so that a lost one does not count as a death",
                ),
            );
        }

        let protocol = parse(report, "protocol", raw.protocol, Protocol::try_from);
        let stream_port = parse(report, "stream_port", raw.stream_port, |value| {
            in_range::<u16>("stream_port", value, 1..=65535)
        });
        let window_scale = parse(report, "window_scale", raw.window_scale, |value| {
            in_range::<u8>("window_scale", value, 0..=WindowScale::MAX.into())
        });
        let current = current?;
        let (key_at, previous_key_at) = (current.span(), previous.span());
        let cluster = Self {
            key: current.into_inner(),
            previous_key: previous.optional()?,
            given_hash_key: hash_key.optional()?,
            protocol: protocol.or(Protocol::EXPERIMENT)?,
            stream_port: stream_port
                .or(STREAM_PORT.get())
                .and_then(NonZeroU16::new)?,
            clock_window: clock_window.or(Duration::from_secs(10))?,
            window_scale: window_scale.or(SCALE)?.try_into().ok()?,
            hello: hello?,
            silence: silence?,
        };
        Some(Draft {
            cluster,
            key_at,
            previous_key_at,
        })
    }
}

/// How one kind of key is parsed, and the remedy if its file cannot be read.
struct Form<K> {
    parse: fn(&str) -> Result<K, Problem>,
    make: &'static str,
}

const KEY: Form<Key> = Form {
    parse: parse_key,
    make: "make it with: (umask 077; openssl rand -hex 32 > FILE), the same on every node, or with: baton key NODE",
};

const HASH_KEY: Form<HashKey> = Form {
    parse: parse_hash_key,
    make: "make it with: (umask 077; openssl rand -hex 16 > FILE), the same on every node that has the secret",
};

/// The hash key that the file gives. A node with only its own keys has the hash key among them. There `hash_key_file`
/// is not read, because the node need not have that file, and a `hash_key` in the configuration must be the same.
fn hash_key(
    report: &mut Report<'_>,
    current: Option<&Key>,
    inline: Field<String>,
    mut file: Field<String>,
    source: Source<'_>,
    keys: &impl Fn(&Path) -> io::Result<KeyFile>,
) -> Parsed<HashKey> {
    let own = match current {
        Some(Key::Node(own)) => Some(own),
        _ => None,
    };
    if own.is_some() && inline.is_none() {
        file = None;
    }
    let given = key(report, &HASH_KEY, "hash_key", inline, file, source, keys);
    if let (Some(own), Parsed::Right(given)) = (own, &given)
        && own.hash_key != *given.get_ref()
    {
        report.error(
            given.span(),
            Problem::new(
                "the node's keys have another hash key than this one",
                "make them anew where the secret is: baton key NODE",
            ),
        );
        return Parsed::Wrong;
    }
    given
}

/// A key that is given either in the configuration itself or in a file of its own.
fn key<K>(
    report: &mut Report<'_>,
    form: &Form<K>,
    name: &str,
    inline: Field<String>,
    file: Field<String>,
    source: Source<'_>,
    keys: &impl Fn(&Path) -> io::Result<KeyFile>,
) -> Parsed<K> {
    if let (Some(_), Some(file)) = (&inline, &file) {
        report.error(
            file.span(),
            Problem::new(
                format!("{name} and {name}_file are both given"),
                "remove one of the two",
            ),
        );
        return Parsed::Wrong;
    }
    if inline.is_some() {
        let key = parse(report, name, inline, |text| (form.parse)(&text));
        if let (Some(at), Some(mode)) = (key.span(), source.mode) {
            exposed(report, at, source.path, mode);
        }
        return key;
    }
    let mut read = None;
    let key = parse(report, &format!("{name}_file"), file, |path| {
        let path = source.path.parent().unwrap_or(Path::new("")).join(path);
        let file = keys(&path).map_err(|error| {
            Problem::new(
                format!("cannot read the key file {}: {error}", path.display()),
                form.make,
            )
        })?;
        let key = (form.parse)(&file.text).map_err(|problem| {
            Problem::new(
                format!("{}: {}", path.display(), problem.what),
                problem.remedy,
            )
        })?;
        read = Some((path, file.mode));
        Ok(key)
    });
    if let (Some(at), Some((path, mode))) = (key.span(), read) {
        exposed(report, at, &path, mode);
    }
    key
}

/// Warns if the mode of a file with a key in it gives access to others than the file's owner.
fn exposed(report: &mut Report<'_>, at: Range<usize>, path: &Path, mode: u32) {
    if mode & 0o077 != 0 {
        report.warning(
            at,
            Problem::new(
                format!(
                    "{} holds the key, and others may open it (mode {mode:04o})",
                    path.display()
                ),
                format!("chmod 600 {}", path.display()),
            ),
        );
    }
}
