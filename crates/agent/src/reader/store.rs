//! Files by which what is kept of connections outlives the daemon, because clients do not send again what was
//! acknowledged to them. Each connection has a file. It is written before the connection's first frame leaves, and
//! removed when the connection's next socket has all data or the connection has ended. So the files that an agent finds
//! at its start are what an agent that was killed still owed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use baton_abi::TcbKey;
use baton_net::client_frame::Segment;

use super::keeping::Given;

/// Extension of a file that is being written.
const UNFINISHED: &str = "new";

/// The directory of the files. It is in memory, and belongs to this node alone.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
}

/// What an earlier process kept of a connection.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) flow: TcbKey,
    /// Sequence number of the first byte that is kept.
    pub(super) begin: u32,
    pub(super) given: Given,
}

impl Store {
    /// Makes the directory, unless it exists already.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn open(dir: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&dir)?;
        Ok(Self { dir })
    }

    /// Writes what is kept of this connection, in place of what was kept before. A process that is killed meanwhile
    /// leaves one of the two.
    pub(super) fn put(&self, flow: &TcbKey, given: &Given) -> io::Result<()> {
        let path = self.path(flow);
        let unfinished = path.with_extension(UNFINISHED);
        fs::write(&unfinished, write(given))?;
        fs::rename(unfinished, path)
    }

    /// Removes what is kept of this connection.
    pub(super) fn remove(&self, flow: &TcbKey) {
        if let Err(error) = fs::remove_file(self.path(flow))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot remove the file of a request that was kept");
        }
    }

    /// Returns what an earlier process has left. Files that cannot be read are of no use to anybody, and are removed if
    /// they can be.
    pub(super) fn left(&self) -> io::Result<Vec<Left>> {
        let mut all = Vec::new();
        for file in fs::read_dir(&self.dir)? {
            let path = file?.path();
            match read_file(&path) {
                Some(left) => all.push(left),
                None => {
                    if let Err(error) = fs::remove_file(&path) {
                        tracing::warn!(path = %path.display(), %error, "cannot remove what is no kept request");
                    }
                }
            }
        }
        Ok(all)
    }

    fn path(&self, flow: &TcbKey) -> PathBuf {
        let (client, cluster) = flow.ends();
        let ends =
            [client, cluster].map(|end| format!("{:08x}{:04x}", end.ip().to_bits(), end.port()));
        self.dir.join(ends.concat())
    }
}

/// Returns the content of a file: the sequence number behind all data, then each frame with its length in front.
fn write(given: &Given) -> Vec<u8> {
    let mut bytes = given.end.to_le_bytes().to_vec();
    for (_, frame) in &given.frames {
        bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes()); // a packet is shorter
        bytes.extend_from_slice(frame);
    }
    bytes
}

fn read_file(path: &Path) -> Option<Left> {
    // No frame of an unfinished file has left.
    if path
        .extension()
        .is_some_and(|extension| extension == UNFINISHED)
    {
        return None;
    }
    read(&fs::read(path).ok()?)
}

/// Reads the content of a file. `None`: it is not what `write` returns.
fn read(bytes: &[u8]) -> Option<Left> {
    let (end, mut rest) = number(bytes)?;
    let mut frames = Vec::new();
    let mut first = None;
    while !rest.is_empty() {
        let (length, behind) = number(rest)?;
        let (frame, behind) = behind.split_at_checked(length as usize)?;
        let segment = Segment::read(frame).ok()?;
        first.get_or_insert((segment.key, segment.seq));
        // A payload is at most as long as a packet.
        let next = segment.seq.wrapping_add(segment.payload.len() as u32);
        frames.push((next, frame.to_vec()));
        rest = behind;
    }
    let (flow, begin) = first?;
    Some(Left {
        flow,
        begin,
        given: Given { frames, end },
    })
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use baton_net::client_frame::{PIECE, Stream};

    use super::*;

    const BEGIN: u32 = u32::MAX - 9;

    fn flow(port: u16) -> (SocketAddrV4, SocketAddrV4) {
        let cluster = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 100), 80);
        (
            SocketAddrV4::new(Ipv4Addr::new(10, 78, 0, 1), port),
            cluster,
        )
    }

    fn given(port: u16, text: &[u8]) -> Given {
        let (client, cluster) = flow(port);
        let stream = Stream {
            mac: [2; 6],
            client,
            cluster,
            ack: 7,
            window: 501,
            stamps: Some((1, 0)),
        };
        Given {
            frames: stream.frames(BEGIN, text, PIECE, true),
            end: BEGIN.wrapping_add(text.len() as u32 + 1),
        }
    }

    #[test]
    fn what_is_kept_is_there_for_the_next_process_until_it_is_removed() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let store = Store::open(dir.path().join("kept"))?;
        let (one, other) = (flow(1), flow(2));
        let (one, other) = (TcbKey::of(one.0, one.1), TcbKey::of(other.0, other.1));
        store.put(&one, &given(1, b"first"))?;
        store.put(&one, &given(1, &[b'x'; 9000]))?;
        store.put(&other, &given(2, b"other"))?;
        store.remove(&other);
        store.remove(&other);
        let left = Store::open(dir.path().join("kept"))?.left()?;
        let [left] = &left[..] else {
            panic!("{left:?}");
        };
        let expected = given(1, &[b'x'; 9000]);
        assert!(left.flow == one);
        assert_eq!(left.begin, BEGIN);
        assert_eq!(left.given.end, expected.end);
        assert!(expected.frames.len() > 1 && left.given.frames == expected.frames);
        Ok(())
    }

    #[test]
    fn what_cannot_be_removed_hides_nothing() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let store = Store::open(dir.path().to_owned())?;
        let (client, cluster) = flow(1);
        store.put(&TcbKey::of(client, cluster), &given(1, b"first"))?;
        fs::create_dir(dir.path().join("no-file"))?;
        assert_eq!(store.left()?.len(), 1);
        Ok(())
    }

    #[test]
    fn what_was_not_finished_is_removed() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let store = Store::open(dir.path().to_owned())?;
        let whole = write(&given(1, b"first"));
        fs::write(dir.path().join("0a4e00010001.new"), &whole)?;
        for (number, cut) in [0, 3, 4, 6, 9, whole.len() - 1].into_iter().enumerate() {
            fs::write(dir.path().join(number.to_string()), &whole[..cut])?;
        }
        assert!(store.left()?.is_empty());
        assert!(fs::read_dir(dir.path())?.next().is_none());
        Ok(())
    }
}
