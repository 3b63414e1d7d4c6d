use baton_core::policy::Policy;
use baton_core::routes::{Host, Route};
use baton_core::rules::{Conditions, Matcher};

use super::*;

/// The service's own pool, and that of its route.
const OWN: u16 = 3;
const IMAGES: u16 = 4;

fn ends() -> Ends {
    Ends {
        client: "192.0.2.7:40000".parse().unwrap(),
        cluster: "192.0.2.100:443".parse().unwrap(),
    }
}

fn server(slot: u16) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, slot as u8)
}

/// The rules of a service with a route for images that are asked for by GET, as they come from a daemon.
fn rules() -> Arc<RequestRules> {
    let route = Route {
        service: 1,
        host: Host::Any,
        path: b"/images/",
        is_conditional: true,
        pool: 9,
    };
    let expression = regex::bytes::Regex::new("^G.T$").unwrap();
    let conditions = Conditions {
        method: Some(Matcher::Regex(expression.into())),
        ..Conditions::default()
    };
    let rules = RequestRules {
        services: vec![JudgedService {
            address: ends().cluster,
            id: 1,
            pool: OWN,
        }],
        rules: Rules::new([(route, conditions)]),
        pools: HashMap::from([(9, IMAGES)]),
        servers: (1..=3).map(|slot| (slot, server(slot))).collect(),
        own: 1,
    };
    let text = serde_json::to_vec(&rules).unwrap();
    Arc::new(serde_json::from_slice(&text).unwrap())
}

fn choose_among(judge: &Judge, pool: u16, policy: Policy, slots: &[u16]) {
    let choices = PoolChoices {
        policy: policy.number(),
        slots: slots.to_vec(),
    };
    judge.choose_among(pool, &choices);
}

/// A judge at data server 1, which has the pool of the service, but not that of images.
fn judge() -> Judge {
    let judge = Judge::default();
    judge.follow(rules());
    choose_among(&judge, OWN, Policy::RoundRobin, &[1, 2]);
    choose_among(&judge, IMAGES, Policy::RoundRobin, &[2, 3]);
    judge
}

async fn judged(judge: &Judge, method: &str, path: &str) -> Judgement {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    judge.request(ends(), head.as_bytes()).await
}

#[tokio::test]
async fn a_member_of_the_pool_keeps_its_requests_and_others_take_turns() {
    let judge = judge();
    assert_eq!(judged(&judge, "GET", "/a").await, Judgement::Here);
    assert_eq!(judged(&judge, "PUT", "/images/a").await, Judgement::Here);
    let mut others = [
        judged(&judge, "GET", "/images/a").await,
        judged(&judge, "GET", "/images/a").await,
    ];
    others.sort_by_key(|one| *one == Judgement::Elsewhere(server(3)));
    assert_eq!(
        others,
        [2, 3].map(|slot| Judgement::Elsewhere(server(slot)))
    );
}

#[tokio::test]
async fn a_path_stays_with_its_server() {
    let judge = judge();
    choose_among(&judge, IMAGES, Policy::Path, &[2, 3]);
    let first = judged(&judge, "GET", "/images/a").await;
    assert_eq!(judged(&judge, "GET", "/images/a").await, first);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_somebody_who_can_answer_it() {
    let judge = Judge::default();
    let asked = {
        let judge = judge.clone();
        tokio::spawn(async move { judged(&judge, "GET", "/images/a").await })
    };
    sleep(NOBODY / 4).await;
    judge.follow(rules());
    sleep(NOBODY / 4).await;
    choose_among(&judge, IMAGES, Policy::RoundRobin, &[3]);
    assert_eq!(asked.await.unwrap(), Judgement::Elsewhere(server(3)));
    choose_among(&judge, IMAGES, Policy::RoundRobin, &[]);
    assert_eq!(judged(&judge, "GET", "/images/a").await, Judgement::Nobody);
}

#[test]
fn a_connection_without_a_request_leaves_the_data_server_that_drains() {
    let judge = judge();
    assert_eq!(judge.connection(ends()), Judgement::Here);
    choose_among(&judge, OWN, Policy::RoundRobin, &[2]);
    let next = Judgement::Elsewhere(server(2));
    assert_eq!(judge.connection(ends()), next);
    assert_eq!(Judge::default().connection(ends()), Judgement::Nobody);
}
