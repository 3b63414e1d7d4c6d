//! The steps of a sequence. They are chosen at random and then fixed, so that some of them can be left out.

use fastrand::Rng;

use crate::script::{Request, Stream};

#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Whether there is an agent. If so, it reads what one packet does not decide, and what is too early waits.
    /// Otherwise both are dropped.
    pub has_agent: bool,
    /// Whether packets are cut anywhere. Otherwise each head is in one packet.
    pub cuts_heads: bool,
    /// Whether somebody changes what was sent, and sends that too.
    pub is_hostile: bool,
    /// Whether somebody who knows no sequence number sends as well.
    pub has_forger: bool,
    /// Whether servers' programs stop listening for a while. What they have accepted goes on.
    pub has_restarts: bool,
    /// Whether data servers drain for a while, and idle connections leave them.
    pub has_drains: bool,
}

#[derive(Clone, Debug)]
pub struct Trial {
    pub mix: Mix,
    pub requests: Vec<Request>,
    pub steps: Vec<Step>,
    /// The first sequence number of the client.
    pub client_isn: u32,
    /// The first sequence number of the server.
    pub server_isn: u32,
    /// The data server that the connection server chooses first.
    pub hint: usize,
    /// The seed of what the recovery chooses.
    pub recovery: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Comes,
    Waits,
    Lost,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// The client sends so many bytes of its stream from `at` on.
    Send {
        at: u32,
        bytes: u32,
        change: Option<Change>,
        fate: Fate,
    },
    /// One of the packets that wait in the network arrives, and with `again` may arrive once more.
    Comes {
        which: u8,
        again: bool,
    },
    /// One of the packets that wait in the network is lost.
    Lost {
        which: u8,
    },
    /// A message between nodes arrives.
    Message {
        which: u8,
    },
    /// A message between nodes is lost.
    MessageLost {
        which: u8,
    },
    /// TCP takes so many packets that its door has let in.
    Tcp {
        node: usize,
        packets: u8,
    },
    /// TCP drops the next packet that its door has let in: its checksum is wrong, or there is no memory.
    Dropped {
        node: usize,
    },
    /// So many packets that were put behind a batch come through the ingress once more.
    Again {
        node: usize,
        packets: u8,
    },
    /// The data that has waited in user space is sent in.
    Early {
        node: usize,
    },
    /// The server reads what has come.
    Read {
        node: usize,
    },
    /// The server writes so many bytes.
    Write {
        node: usize,
        bytes: u8,
    },
    /// The client acknowledges all that has come.
    Ack,
    Agent {
        node: usize,
    },
    /// The server stops listening, or listens again.
    Listens {
        node: usize,
        again: bool,
    },
    /// All that is on its way arrives, and servers answer what they have.
    Rests,
    /// The data server drains, or no longer does.
    Drains {
        node: usize,
        again: bool,
    },
    /// The daemon has the node's connection leave, if it is idle and the data server drains.
    Leaves {
        node: usize,
    },
    /// A packet comes from somebody who guesses sequence numbers.
    Forge {
        seq: u32,
        ack: u32,
        bytes: u16,
    },
    Time {
        milliseconds: u16,
    },
}

/// A change of a segment, so that it says something else than the client's stream.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub how: u8,
    pub at: u32,
    pub to: u8,
}

impl Change {
    fn random(rng: &mut Rng) -> Self {
        Self {
            how: rng.u8(..8),
            at: rng.u32(..64),
            to: b"abc/ \r\n:0123456789"[rng.usize(..18)],
        }
    }

    pub fn apply(self, bytes: &mut Vec<u8>) {
        let swap = |bytes: &mut Vec<u8>, from: &[u8], to: &[u8]| {
            if let Some(at) = bytes.windows(from.len()).position(|part| part == from) {
                bytes[at..at + from.len()].copy_from_slice(to);
            }
        };
        match self.how {
            0 => swap(bytes, b" /a", b" /b"),
            1 => swap(bytes, b" /b/", b" /a/"),
            2 => swap(bytes, b" /c", b" /b"),
            3 => swap(bytes, b"Length: ", b"Lengta: "),
            // Some servers take these line ends.
            5 => swap(bytes, b"\r\n0\r\n\r\n", b"\r\n0\r\n\n\n"),
            4 | 6 if !bytes.is_empty() => {
                let at = self.at as usize % bytes.len();
                bytes[at] = self.to;
            }
            _ => {
                let text = b"GET /b HTTP/1.1\r\nHost: h\r\n\r\n";
                let many = bytes.len().min(text.len());
                bytes[..many].copy_from_slice(&text[..many]);
            }
        }
    }
}

impl Trial {
    pub fn random(rng: &mut Rng, mix: Mix) -> Self {
        let requests: Vec<_> = (0..rng.usize(1..6)).map(|_| Request::random(rng)).collect();
        let stream = Stream::of(&requests);
        let mut steps = Vec::new();
        let mut cursor = 0;
        let many = rng.usize(10..70);
        while steps.len() < many {
            push_step(rng, mix, &stream, &mut cursor, &mut steps);
        }
        if mix.has_restarts {
            scatter(rng, &mut steps, 5, |rng, node| Step::Listens {
                node,
                again: rng.u8(..3) == 0,
            });
        }
        if mix.has_drains {
            scatter(rng, &mut steps, 5, |rng, node| Step::Drains {
                node,
                again: rng.bool(),
            });
            scatter(rng, &mut steps, 8, |_, node| Step::Leaves { node });
            for _ in 0..rng.usize(1..4) {
                let (at, first) = (rng.usize(..=steps.len()), rng.usize(..3));
                let leave = (first..first + 3).map(|node| Step::Leaves { node: node % 3 });
                let drains = Step::Drains {
                    node: rng.usize(1..3),
                    again: false,
                };
                steps.splice(at..at, [Step::Rests, drains].into_iter().chain(leave));
            }
        }
        Self {
            mix,
            requests,
            steps,
            client_isn: if rng.u8(..4) == 0 {
                0_u32.wrapping_sub(rng.u32(..5000))
            } else {
                rng.u32(..)
            },
            server_isn: rng.u32(..),
            hint: rng.usize(..3),
            recovery: rng.u64(..),
        }
    }
}

/// Puts some steps, fewer than `most`, anywhere between the others.
fn scatter(
    rng: &mut Rng,
    steps: &mut Vec<Step>,
    most: usize,
    make: impl Fn(&mut Rng, usize) -> Step,
) {
    for _ in 0..rng.usize(1..most) {
        let node = rng.usize(..3);
        let step = make(rng, node);
        steps.insert(rng.usize(..=steps.len()), step);
    }
}

/// Chooses where a packet that begins at `at` ends: often behind a head or a request.
fn next_edge(rng: &mut Rng, mix: Mix, stream: &Stream, at: u32) -> u32 {
    let whole = rng.bool();
    let edge = |one: &crate::script::Extent| {
        if whole || one.head_end <= at {
            one.end
        } else {
            one.head_end
        }
    };
    let end = stream
        .requests
        .iter()
        .map(edge)
        .find(|&end| end > at)
        .unwrap_or(stream.len());
    if !mix.cuts_heads {
        // In a body a packet may end anywhere.
        let inside = stream
            .requests
            .iter()
            .find(|one| one.head_end <= at && at < one.end);
        return match inside {
            Some(one) if rng.bool() => rng.u32(at + 1..=one.end),
            _ => end,
        };
    }
    match rng.u8(..8) {
        0..4 => end,
        4 => at + 1448,
        5 => at + rng.u32(1..200),
        6 => at + rng.u32(1..6000),
        _ => stream.len(),
    }
}

/// Chooses where a packet that is sent again begins.
fn old_begin(rng: &mut Rng, mix: Mix, stream: &Stream, cursor: u32) -> u32 {
    let one = stream.requests[rng.usize(..stream.requests.len())];
    let at = match rng.u8(..4) {
        0..2 => one.begin,
        2 => one.head_end,
        _ if mix.cuts_heads => rng.u32(..=cursor),
        _ => rng.u32(one.head_end..=one.end),
    };
    at.min(cursor)
}

fn push_step(rng: &mut Rng, mix: Mix, stream: &Stream, cursor: &mut u32, steps: &mut Vec<Step>) {
    let node = rng.usize(..3);
    let fate = match rng.u8(..10) {
        0..7 => Fate::Comes,
        7..9 => Fate::Waits,
        _ => Fate::Lost,
    };
    match rng.u8(..100) {
        0..22 => {
            let at = *cursor;
            if at >= stream.len() {
                return;
            }
            *cursor = next_edge(rng, mix, stream, at).min(stream.len());
            steps.push(Step::Send {
                at,
                bytes: *cursor - at,
                change: None,
                fate,
            });
        }
        22..32 => {
            let at = old_begin(rng, mix, stream, *cursor);
            let end = next_edge(rng, mix, stream, at).min(stream.len());
            *cursor = end.max(*cursor);
            if end > at {
                steps.push(Step::Send {
                    at,
                    bytes: end - at,
                    change: None,
                    fate,
                });
            }
        }
        32..36 if mix.is_hostile => {
            let at = if rng.bool() {
                *cursor
            } else {
                old_begin(rng, mix, stream, *cursor)
            };
            let end = next_edge(rng, mix, stream, at).min(stream.len());
            if end > at {
                steps.push(Step::Send {
                    at,
                    bytes: end - at,
                    change: Some(Change::random(rng)),
                    fate,
                });
            }
        }
        36..39 if mix.has_forger => steps.push(Step::Forge {
            seq: rng.u32(..),
            ack: rng.u32(..),
            bytes: rng.u16(..100),
        }),
        32..43 => steps.push(Step::Comes {
            which: rng.u8(..),
            again: rng.u8(..5) == 0,
        }),
        43..44 => steps.push(Step::Lost { which: rng.u8(..) }),
        44..53 => steps.push(Step::Message { which: rng.u8(..) }),
        53..54 => steps.push(Step::MessageLost { which: rng.u8(..) }),
        54..56 => steps.push(Step::Dropped { node }),
        56..68 => steps.push(Step::Tcp {
            node,
            packets: rng.u8(1..5),
        }),
        68..76 => steps.push(Step::Again {
            node,
            packets: rng.u8(1..5),
        }),
        76..80 => steps.push(Step::Early { node }),
        80..86 => steps.push(Step::Read { node }),
        86..92 => steps.push(Step::Write {
            node,
            bytes: if rng.bool() { 255 } else { rng.u8(1..) },
        }),
        92..96 => steps.push(Step::Ack),
        96..98 => steps.push(Step::Agent { node }),
        _ => steps.push(Step::Time {
            milliseconds: rng.u16(..200),
        }),
    }
}
