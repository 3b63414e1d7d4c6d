//! Which data server gets a connection: the daemon writes the choices, and one is picked in turn or by client.

use std::{collections::BTreeMap, net::SocketAddrV4};

use baton_abi::{CHOICES_PER_POOL, MAX_POOLS, Pool, Service, ServiceKey};

use crate::prelude::*;

#[test]
fn each_in_turn() {
    let node = Node::fresh_cs();
    let owners: Vec<u16> = (0..9).map(|_| owner(&node, &Client::of(WEB))).collect();
    assert_eq!(owners, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    for index in 0..3 {
        assert_eq!(node.connections(index), 3);
    }
}

#[test]
fn as_often_as_the_choices_say() {
    let node = Node::fresh_cs();
    set_choices(&node, WEB, &[0, 0, 1, 0, 0, 1, 2]);
    let mut owners = BTreeMap::new();
    for _ in 0..70 {
        *owners.entry(owner(&node, &Client::of(WEB))).or_insert(0) += 1;
    }
    assert_eq!(owners, BTreeMap::from([(0, 40), (1, 20), (2, 10)]));
}

/// Each service takes its own turns.
#[test]
fn services_do_not_disturb_each_other() {
    let node = Node::fresh_cs();
    set_choices(&node, SMTP, &[2, 1]);
    let owners: Vec<(u16, u16)> = (0..4)
        .map(|_| (owner(&node, &Client::of(WEB)), ack_owner(&node)))
        .collect();
    assert_eq!(owners, [(0, 2), (1, 1), (2, 2), (0, 1)]);
}

#[test]
fn one_client_one_data_server() {
    let node = Node::cs();
    let mut owners = BTreeMap::new();
    for host in 0..200 {
        let of_this_host = [(); 3].map(|()| owner(&node, &client(host)));
        let [first, ..] = of_this_host;
        assert_eq!(of_this_host, [first; 3]);
        *owners.entry(first).or_insert(0) += 1;
    }
    // Each gets a third on average; with less than half of that the hash would not spread.
    assert!(
        owners.len() == 3 && owners.values().all(|&n| n > 33),
        "{owners:?}"
    );
}

/// With the same choices and seed, another connection server makes the same choice, and so does this one after a
/// restart.
#[test]
fn a_hash_is_the_same_everywhere() {
    let (one, other) = (Node::cs(), Node::cs());
    for node in [&one, &other] {
        set_choices(node, BY_CLIENT, &[0, 1, 2, 2, 1, 0, 1]);
    }
    for host in 0..50 {
        assert_eq!(owner(&one, &client(host)), owner(&other, &client(host)));
    }
}

#[test]
fn another_seed_is_another_hash() {
    let node = Node::cs();
    let all = || -> Vec<u16> { (0..40).map(|host| owner(&node, &client(host))).collect() };
    let before = all();
    assert_eq!(before, all());
    let (index, pool) = pool(&node, BY_CLIENT);
    let reseeded = Pool {
        hash_seed: 1,
        ..pool
    };
    node.routing().set_pool(index, &reseeded).unwrap();
    assert_ne!(before, all());
}

/// The daemon fills the bank that is not in use, then points the pool at it.
#[test]
fn the_other_bank() {
    let node = Node::fresh_cs();
    assert_eq!(owner(&node, &Client::of(WEB)), 0);
    let (index, web) = pool(&node, WEB);
    let first_choice = web.first_choice + CHOICES_PER_POOL;
    node.routing().set_choices(first_choice, &[2, 2]).unwrap();
    let swapped = Pool {
        first_choice,
        choices: 2,
        ..web
    };
    node.routing().set_pool(index, &swapped).unwrap();
    for _ in 0..5 {
        assert_eq!(owner(&node, &Client::of(WEB)), 2);
    }
}

/// The last pool, its second bank, its last choice and the last data server work like any others.
#[test]
fn the_far_ends_of_the_maps() {
    const LAST: u16 = MAX_POOLS as u16 - 1;
    let node = Node::fresh_cs();
    let (_, web) = pool(&node, WEB);
    let mut choices = vec![65535; CHOICES_PER_POOL as usize];
    *choices.last_mut().unwrap() = 255;
    let bank = first_choice(LAST) + CHOICES_PER_POOL;
    node.routing().set_choices(bank, &choices).unwrap();
    node.plane()
        .set_data_server(255, &data_server(255))
        .unwrap();
    let far = Pool {
        first_choice: bank + CHOICES_PER_POOL - 1,
        choices: 1,
        ..web
    };
    node.routing().set_pool(LAST, &far).unwrap();
    let (key, service) = service(&node, WEB);
    let far = Service {
        pool: LAST,
        ..service
    };
    node.plane().set_service(&key, &far).unwrap();
    assert_eq!(owner(&node, &Client::of(WEB)), 255);
    assert_eq!(node.connections(255), 1);
}

/// A new connection from one of 256 client addresses.
fn client(host: u8) -> Client {
    let client = Client::of(BY_CLIENT);
    let address = SocketAddrV4::new([203, 0, 113, host].into(), client.address.port());
    Client { address, ..client }
}

fn owner(node: &Node, client: &Client) -> u16 {
    let cookie = node.cookie(client);
    node.run(&client.get(cookie).frame())
        .expect(Tx, &[("cs_adopt", 1)]);
    node.tcb(client).unwrap().owner
}

fn ack_owner(node: &Node) -> u16 {
    let client = Client::of(SMTP);
    let ack = client.ack(node.cookie(&client));
    node.run(&ack.frame()).expect(Tx, &[("cs_adopt", 1)]);
    node.tcb(&client).unwrap().owner
}

fn service(node: &Node, at: SocketAddrV4) -> (ServiceKey, Service) {
    let at = ServiceKey::of(at);
    let services = node.plane().services().unwrap();
    services.into_iter().find(|(key, _)| *key == at).unwrap()
}

/// The pool of a service, with its index.
fn pool(node: &Node, at: SocketAddrV4) -> (u16, Pool) {
    let index = service(node, at).1.pool;
    (index, node.routing().pool(index).unwrap())
}

fn set_choices(node: &Node, at: SocketAddrV4, choices: &[u16]) {
    let (index, pool) = pool(node, at);
    node.set_choices(index, choices);
    let choices = choices.len() as u32;
    node.routing()
        .set_pool(index, &Pool { choices, ..pool })
        .unwrap();
}
