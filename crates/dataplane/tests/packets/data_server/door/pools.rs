//! Requests that something other than a route leads to a pool, and services whose connections stay whatever they
//! request.

use std::collections::BTreeSet;

use baton_abi::{SERVICE_OWNER, SERVICE_PATHS, SERVICE_SIZES, SERVICE_STAYS, Service, ServiceKey};
use baton_wire::PathHash;

use super::owner::{ELSEWHERE, HERE, ended, goes_with, lets_in, node, request, serves};
use crate::{data_server::handover::leave::members, prelude::*};

/// An owned connection of a service with these flags. The pool of the service's large content has data server 1 alone.
fn owned(flags: u32) -> Live {
    let live = Live::owned(node(), SERVICE_PATHS);
    let service = Service {
        flags: (SERVICE_OWNER | flags) as u16,
        large: first_pool_of_one() + 1,
        ..Service::default()
    };
    let plane = live.node.plane();
    plane.set_service(&ServiceKey::of(WEB), &service).unwrap();
    live
}

/// Makes the content at this path large.
fn large(live: &Live, path: &str) {
    let hash = PathHash::of(key().hash_key(), path.as_bytes()).unwrap();
    let all = BTreeSet::from([(0, hash.get())]);
    live.node.routing().set_large(&all).unwrap();
}

#[test]
fn large_content_that_no_route_takes_has_a_pool_of_its_own() {
    let _host = own_host();
    let mut live = owned(SERVICE_PATHS | SERVICE_SIZES);
    large(&live, "/film");
    serves(&mut live, b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n");
    goes_with(
        &live,
        &request(&live, b"GET /film?a HTTP/1.1\r\nHost: x\r\n\r\n"),
    );
    ended(&live);
}

#[test]
fn a_route_is_asked_before_sizes_are() {
    let _host = own_host();
    let live = owned(SERVICE_PATHS | SERVICE_SIZES);
    large(&live, "/ds1/a");
    lets_in(&live, HERE);
}

/// This data server sends nothing when it ends the connection. The connection server resets the client, which tries
/// again.
#[test]
fn where_connections_stay_one_ends_with_a_request_for_another_pool() {
    let _host = own_host();
    let mut live = owned(SERVICE_PATHS | SERVICE_STAYS);
    serves(&mut live, HERE);
    live.forwards(&request(&live, ELSEWHERE), &[("ds_door_fixed", 1)]);
    ended(&live);
    live.nothing_sent();
}

#[test]
fn where_connections_stay_they_do_so_at_one_that_drains() {
    let _host = own_host();
    let mut live = owned(SERVICE_STAYS);
    serves(&mut live, HERE);
    members(&live, 0b10);
    lets_in(&live, HERE);
}
