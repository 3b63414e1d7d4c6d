//! A data server that was cut off says nothing for a connection that may be another's by now: it asks the client.

use std::{
    io::Write as _,
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use baton_abi::SENT_SHIFT;
use baton_wire::Message;
use nix::sys::socket::{setsockopt, sockopt::Linger};

use super::owner::is_reset;
use crate::data_server::adopt::loopback::{FORWARDED, Live, await_counted, expect, forward, send};
use crate::data_server::adopt::window::{backoff_of, in_flight_of};
use crate::{
    host::{on_own_host, send_again},
    node::Counted,
    segment::{Client, Segment},
};

const LEASE: Duration = Duration::from_millis(200);
/// Than that, and than a client is believed that was heard.
const LONGER: Duration = Duration::from_millis(700);
const MORE: &[u8] = b"more";
const NONE: Counted<'_> = &[("ds_none", 1)];

/// Its response is under way, and its connection server was heard just now.
fn leased() -> Live {
    under_lease(Live::answering())
}

fn under_lease(live: Live) -> Live {
    live.stream.set_nodelay(true).unwrap();
    let lease = u32::try_from(LEASE.as_nanos() >> SENT_SHIFT).unwrap();
    live.node.change(|settings| settings.lease = lease);
    hear_connection_server(&live);
    live
}

/// It forwards a packet of another client.
fn hear_connection_server(live: &Live) {
    let stranger = Client::fresh().later(1, 1, 1);
    forward(&live.node, &stranger);
    while live.wire.next().body.is_empty() {}
}

/// The client is asked: what leaves is from before what it has, and empty.
#[track_caller]
fn asks(live: &Live) {
    let said = live.said();
    let segment = said.segment();
    let before = live.ack().ack.wrapping_sub(1);
    assert_eq!(segment.sequence_number(), before);
    assert!(said.payload().is_empty());
    assert!(segment.ack() && !segment.fin() && !segment.rst() && !segment.psh());
    assert!(live.node.moved().contains_key("ds_fenced"));
}

/// Something else takes its place.
fn close(live: &mut Live) {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    live.stream = TcpStream::connect(other.local_addr().unwrap()).unwrap();
}

fn write(mut stream: &TcpStream) {
    stream.write_all(MORE).unwrap();
}

/// What the server writes leaves.
#[track_caller]
fn writes(live: &Live) {
    write(&live.stream);
    let said = std::iter::repeat_with(|| live.said()).find(|said| !said.payload().is_empty());
    assert_eq!(said.unwrap().payload(), MORE);
}

/// A packet of the client has come.
fn hear_client(live: &Live) {
    forward(&live.node, &live.ack());
    await_counted(&live.node, "ds_forwarded");
}

#[test]
fn within_the_lease_all_is_said() {
    on_own_host(|| {
        let live = leased();
        write(&live.stream);
        assert_eq!(live.response().payload(), MORE);
    });
}

#[test]
fn without_a_lease_all_is_said() {
    on_own_host(|| {
        let live = leased();
        live.node.change(|settings| settings.lease = 0);
        thread::sleep(LONGER);
        write(&live.stream);
        assert_eq!(live.response().payload(), MORE);
    });
}

/// The client answers, and is led here: this is whose connection it is.
#[test]
fn cut_off_it_asks_until_the_client_was_heard() {
    on_own_host(|| {
        let live = leased();
        thread::sleep(LONGER);
        write(&live.stream);
        asks(&live);
        hear_client(&live);
        writes(&live);
    });
}

/// TCP tries again in the same time as before, or what is sent once the client was heard could come many seconds later.
#[test]
fn what_does_not_leave_is_tried_again_soon() {
    for is_in_flight in [false, true] {
        on_own_host(|| {
            send_again();
            let live = leased();
            if !is_in_flight {
                thread::sleep(LONGER);
            }
            write(&live.stream);
            while !live.said().payload().is_empty() {}
            // Else TCP would give up after some seconds.
            assert_eq!(in_flight_of(&live.stream), 1);
            let before = backoff_of(&live.stream);
            for _ in 0..3 {
                asks(&live);
            }
            assert_eq!(backoff_of(&live.stream), before);
        });
    }
}

/// Nothing has come of the client but the request with which it was adopted.
#[test]
fn cut_off_it_asks_before_its_first_response() {
    on_own_host(|| {
        let mut live = under_lease(Live::adopted());
        live.answers = 0;
        thread::sleep(LONGER);
        write(&live.stream);
        asks(&live);
        hear_client(&live);
        writes(&live);
    });
}

/// The connection server is heard again, and the client not yet.
#[test]
fn after_a_silence_it_asks_until_the_client_was_heard() {
    on_own_host(|| {
        let live = leased();
        thread::sleep(LONGER);
        hear_connection_server(&live);
        write(&live.stream);
        asks(&live);
        hear_client(&live);
        writes(&live);
    });
}

#[test]
fn taken_for_dead_it_asks_until_the_client_was_heard() {
    on_own_host(|| {
        for dead in [false, true] {
            let live = leased();
            thread::sleep(LEASE / 10);
            let alive = Message::Alive {
                turned: false,
                dead,
            };
            send(&live.node, &alive, &live.ack());
            await_counted(&live.node, "ds_alive");
            if dead {
                write(&live.stream);
                asks(&live);
                hear_client(&live);
            }
            writes(&live);
        }
    });
}

/// Another data server has had the connection meanwhile, and a connection server that does not know sends its packets here: they find
/// no socket from then on, so it asks who has it.
#[test]
fn after_a_silence_a_connection_that_went_on_elsewhere_ends() {
    on_own_host(|| {
        for was_silent in [false, true] {
            let live = leased();
            expect(&live.node, NONE);
            if was_silent {
                thread::sleep(LONGER);
                hear_connection_server(&live);
                expect(&live.node, NONE);
            }
            let ack = live.ack();
            let more = Segment {
                ack: ack.ack.wrapping_add(1000),
                ..ack
            };
            forward(&live.node, &more);
            if was_silent {
                expect(&live.node, &[("ds_stale_ended", 1)]);
                is_reset(&live.stream);
                forward(&live.node, &more);
                expect(&live.node, NONE);
            } else {
                expect(&live.node, FORWARDED);
            }
        }
    });
}

/// A socket that is gone says so to nobody: its client finds out by its next packet.
#[test]
fn cut_off_it_resets_nobody() {
    on_own_host(|| {
        for is_reset in [false, true] {
            let mut live = leased();
            if is_reset {
                let linger = nix::libc::linger {
                    l_onoff: 1,
                    l_linger: 0,
                };
                setsockopt(&live.stream, Linger, &linger).unwrap();
            }
            thread::sleep(LONGER);
            close(&mut live);
            asks(&live);
        }
    });
}
