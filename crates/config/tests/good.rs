//! Correct files, and the configurations that they give.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use baton_config::{
    ClientAddress, Conditions, Config, Error, ForwardingNetwork, ForwardingPolicy, FrontAddress,
    HealthCheck, HostPattern, Key, LocalServer, Pattern, Policy, Probe, Roles, Service, Split,
    Weights, Xdp,
};
use baton_wire::HashKey;
use common::{SAMPLE, parse, routed};

fn cluster_key(hex: &str) -> Key {
    Key::Secret(hex.parse().unwrap())
}

#[test]
fn the_sample_parses_without_a_warning() {
    let loaded = parse(SAMPLE).unwrap();
    assert_eq!(loaded.warnings, []);
    let config = loaded.config;
    assert_eq!(
        config.cluster.key,
        cluster_key(&"0123456789abcdef".repeat(4))
    );
    assert_eq!(config.cluster.previous_key, None);
    assert_eq!(config.nodes.len(), 3);
    assert_eq!(config.services.len(), 1);
    let web = &config.services[0];
    assert_eq!((web.name.as_str(), web.port.get()), ("web", 80));
    assert_eq!(web.address.to_string(), "192.0.2.100");
    let health = web.health.as_ref().unwrap();
    assert!(matches!(&health.probe, Probe::Http(path) if path.as_str() == "/"));
    assert_eq!(
        (health.interval, health.timeout),
        (Duration::from_secs(1), Duration::from_millis(500))
    );
    assert_eq!((health.rise.get(), health.fall.get()), (1, 2));
    let names: Vec<_> = config
        .data_servers_of(web)
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(names, ["ds1", "ds2"]);
}

/// Every value that the sample shows as a default is the value of an absent key.
#[test]
fn the_sample_tells_the_true_defaults() {
    let shown = parse(SAMPLE).unwrap().config;
    let bare = parse(
        r#"
        [cluster]
        key_file = "cluster.key"
        [[node]]
        name = "cs1"
        address = "192.0.2.2"
        interface = "eth0"
        roles = ["cs"]
        [[node]]
        name = "ds1"
        address = "192.0.2.11"
        roles = ["ds"]
        [[node]]
        name = "ds2"
        address = "192.0.2.12"
        roles = ["ds"]
        [[service]]
        name = "web"
        address = "192.0.2.100"
        port = 80
        health = { kind = "http" }
        "#,
    );
    assert_eq!(bare.unwrap().config, shown);
}

#[test]
fn every_key_is_read() {
    let config = parse(
        r#"
        cluster = { key = "00ffABcd00ffABcd00ffABcd00ffABcd00ffABcd00ffABcd00ffABcd00ffABcd", previous_key_file = "/etc/baton/cluster.previous.key", protocol = 254, stream_port = 1, clock_window = "2s", window_scale = 0, hello = "50ms", silence = "300ms" }
        local = { name = "a", bpf_dir = "/b", run_dir = "/r", metrics = "" }
        cs = { flows = 1, idle = "2h", closing = "5s", stray_grace = "0s", dead_after = "200ms", kept_requests = 4 }
        [[node]]
        name = "a"
        address = "10.0.0.1"
        roles = ["ds", "cs"]
        weight = 255
        interface = "lan.7"
        xdp = "auto"
        [[service]]
        name = "smtp"
        address = "10.0.0.100"
        port = 25
        policy = "client"
        split = "ack"
        nodes = ["a"]
        health.kind = "none"
        [[service]]
        name = "db"
        address = "10.0.0.101"
        port = 5432
        policy = "weighted"
        resume = true
        head_timeout = "5s"
        "#,
    )
    .unwrap()
    .config;
    assert_eq!(config.cluster.key, cluster_key(&"00ffABcd".repeat(8)));
    assert_eq!(
        config.cluster.previous_key,
        Some(cluster_key(&"fedcba9876543210".repeat(4)))
    );
    assert_eq!(config.cluster.protocol.number(), 254);
    assert_eq!(config.cluster.stream_port.get(), 1);
    assert_eq!(config.cluster.clock_window, Duration::from_secs(2));
    assert_eq!(config.cluster.window_scale.shift(), 0);
    assert_eq!(config.cluster.hello, Duration::from_millis(50));
    assert_eq!(config.cluster.silence, Duration::from_millis(300));
    assert_eq!(config.local.bpf_dir.to_str(), Some("/b"));
    assert_eq!(config.local.run_dir.to_str(), Some("/r"));
    assert_eq!(config.local.metrics, None);
    assert_eq!(config.cs.flows.get(), 1);
    assert_eq!(config.cs.idle, Duration::from_secs(7200));
    assert_eq!(config.cs.closing, Duration::from_secs(5));
    assert_eq!(config.cs.stray_grace, Duration::ZERO);
    assert_eq!(config.cs.dead_after, Duration::from_millis(200));
    assert_eq!(config.cs.kept_requests.get(), 4);
    assert_eq!(
        [config.services[0].resume, config.services[1].resume],
        [false, true]
    );
    let timeouts = [0, 1].map(|service| config.services[service].head_timeout.as_secs());
    assert_eq!(timeouts, [60, 5]);
    let node = &config.nodes[0];
    assert_eq!((node.roles, node.weight), (Roles::CS_AND_DS, 255));
    assert_eq!(node.interfaces, ["lan.7".parse().unwrap()]);
    assert_eq!(node.xdp, Xdp::Auto);
    let [smtp, db] = &config.services[..] else {
        panic!("two services")
    };
    assert_eq!(
        (smtp.policy, smtp.split, &smtp.health),
        (Policy::Client, Split::Ack, &None)
    );
    assert_eq!((db.policy, db.split), (Policy::Weighted, Split::Request));
    assert_eq!(db.health, Some(HealthCheck::default()));
}

#[test]
fn interfaces_of_a_node() {
    let of = |key: &str| {
        let text = format!(
            "[cluster]\nkey = \"{}\"\n\
             [[node]]\nname = \"cs1\"\naddress = \"192.0.2.2\"\nroles = [\"cs\"]\n{key}\n\
             [[node]]\nname = \"ds1\"\naddress = \"192.0.2.11\"\nroles = [\"ds\"]\n\
             [[service]]\nname = \"web\"\naddress = \"192.0.2.100\"\nport = 80\n",
            "5a".repeat(32)
        );
        let config = common::parse(&text).unwrap().config;
        let names = &config.node_named("cs1").unwrap().interfaces;
        names.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(of(""), Vec::<String>::new(), "by address");
    assert_eq!(of("interface = \"eth0\""), ["eth0"]);
    assert_eq!(of("interface = [\"eth0\"]"), ["eth0"]);
    // The order of the file is kept: packets of clients come by the first interface.
    assert_eq!(of("interface = [\"eth1\", \"eth0\"]"), ["eth1", "eth0"]);
}

#[test]
fn the_sample_shows_a_pool_and_a_route_as_they_are_written() {
    let loaded = parse(&routed()).unwrap();
    assert_eq!(loaded.warnings, []);
    let web = &loaded.config.services[0];
    let [pool] = &web.pools[..] else {
        panic!("one pool: {:?}", web.pools)
    };
    assert_eq!((pool.name.as_str(), pool.policy), ("images", Policy::Path));
    assert_eq!(pool.nodes.len(), 1);
    let [route] = &web.routes[..] else {
        panic!("one route: {:?}", web.routes)
    };
    assert!(matches!(&route.host, HostPattern::Below(name) if name.as_str() == "example.org"));
    assert_eq!((route.path.to_string(), route.pool), ("/images/".into(), 0));
}

#[test]
fn a_dispatcher_on_a_node_of_its_own() {
    let node = "[[node]]\nname = \"d\"\naddress = \"192.0.2.20\"\nroles = [\"dispatcher\"]\n";
    let text = SAMPLE
        .replacen("[[service]]", &format!("{node}[[service]]"), 1)
        .replacen("name = \"web\" ", "dispatcher = \"d\"\nname = \"web\" ", 1);
    let loaded = parse(&text).unwrap();
    assert_eq!(loaded.warnings, []);
    let config = loaded.config;
    let node = config.node_named("d").unwrap();
    assert_eq!(node.roles, Roles::DISPATCHER);
    let web = &config.services[0];
    assert_eq!(web.dispatcher.as_ref(), Some(&node.name));
    // The dispatcher serves nothing itself.
    assert!(config.data_servers().all(|server| server.name != node.name));
    assert!(!web.data_servers().contains(&&node.name));
    let patience = config.cs.dispatcher_patience;
    assert_eq!(patience, std::time::Duration::from_millis(5));
    let release = config.cs.release_after;
    assert_eq!(release, None, "a response may pause");
}

#[test]
fn conditions_of_routes() {
    let text = SAMPLE.to_owned()
        + r#"
        [[service.pool]]
        name = "own"
        [[service.route]]
        path = "/a/"
        regex = '\.php$'
        method = "POST"
        header = { X-Beta = "yes", User-Agent = "~(?i)mobile" }
        cookie = { group = "b" }
        query = { v = "2", debug = "~" }
        pool = "own"
        [[service.route]]
        path = "/a/"
        method = "~^P"
        pool = "own"
        [[service.route]]
        path = "/a/"
        pool = "own"
        "#;
    let loaded = parse(&text).unwrap();
    assert_eq!(loaded.warnings, []);
    let routes = &loaded.config.services[0].routes;
    let regex = |text: &str| Pattern::Regex(text.parse().unwrap());
    let exactly = |text: &str| Pattern::Exactly(text.into());
    let all = Conditions {
        regex: Some(r"\.php$".parse().unwrap()),
        method: Some(exactly("POST")),
        header: vec![
            ("User-Agent".into(), regex("(?i)mobile")),
            ("X-Beta".into(), exactly("yes")),
        ],
        cookie: vec![("group".into(), exactly("b"))],
        query: vec![("debug".into(), regex("")), ("v".into(), exactly("2"))],
        alpn: None,
    };
    let method = Conditions {
        method: Some(regex("^P")),
        ..Conditions::default()
    };
    let found: Vec<_> = routes.iter().map(|route| &route.conditions).collect();
    assert_eq!(found, [&all, &method, &Conditions::default()]);
}

#[test]
fn pools_and_routes() {
    let text = SAMPLE.replace("policy = \"round-robin\"", "policy = \"lard\"");
    let text = text.replace("nodes = [\"ds1\", \"ds2\"]", "nodes = [\"ds2\"]")
        + r#"
        [[service.pool]]
        name = "own"
        [[service.pool]]
        name = "other"
        nodes = ["ds1", "ds2"]
        policy = "least-loaded"
        [[service.route]]
        pool = "other"
        [[service.route]]
        host = "WWW.Example.org"
        path = "/Shop"
        pool = "own"
        resume = true
        [[service]]
        name = "second"
        address = "192.0.2.100"
        port = 81
        split = "ack"
        policy = "least-loaded"
        nodes = ["ds2"]
        [[service]]
        name = "third"
        address = "192.0.2.100"
        port = 82
        nodes = ["ds2"]
        resume = true
        pool = [{ name = "own", nodes = ["ds1"] }]
        route = [{ pool = "own" }, { pool = "own", path = "/a", resume = false }]
        "#;
    let loaded = parse(&text).unwrap();
    assert_eq!(loaded.warnings, []);
    let config = loaded.config;
    let [web, second, third] = &config.services[..] else {
        panic!("three services")
    };
    // A key that a pool lacks has the value of its service.
    let [own, other] = &web.pools[..] else {
        panic!("two pools")
    };
    assert_eq!((&own.nodes, own.policy), (&web.nodes, Policy::Lard));
    assert_eq!((other.nodes.len(), other.policy), (2, Policy::LeastLoaded));
    let routes: Vec<_> = web
        .routes
        .iter()
        .map(|route| (route.host.to_string(), route.path.to_string(), route.pool))
        .collect();
    assert_eq!(
        routes,
        [
            (String::new(), "/".into(), 1),
            ("www.example.org".into(), "/Shop".into(), 0)
        ]
    );
    let of_routes = |service: &Service| -> Vec<bool> {
        let routes = service.routes.iter();
        routes.map(|route| route.resume).collect()
    };
    assert_eq!((web.resume, of_routes(web)), (false, vec![false, true]));
    assert_eq!((third.resume, of_routes(third)), (true, vec![true, false]));
    let resumes = [web, second, third].map(Service::resumes);
    assert_eq!(resumes, [true, false, true]);
    assert_eq!(web.routes[0].host, HostPattern::Any);
    assert_eq!((second.pools.len(), second.routes.len()), (0, 0));
    // A node that only a pool lists serves the service as well.
    let ds1 = config.node_named("ds1").unwrap();
    let names: Vec<_> = config
        .services_of(&ds1.name)
        .map(|service| service.name.as_str())
        .collect();
    assert_eq!(names, ["web", "third"]);
    let names: Vec<_> = third
        .data_servers()
        .iter()
        .map(|name| name.as_str())
        .collect();
    assert_eq!(names, ["ds2", "ds1"]);
    assert_eq!(config.data_servers_of(web).count(), 2);
}

#[test]
fn questions() {
    let config = parse(SAMPLE).unwrap().config;
    assert_eq!(config.this_node("cs1").unwrap().name.as_str(), "cs1");
    let error = config.this_node("elsewhere").unwrap_err();
    assert!(matches!(&error, Error::NotInCluster { known, .. } if known == "cs1, ds1, ds2"));
    let ds1 = config.node_named("ds1").unwrap();
    assert_eq!(config.node_at(ds1.address.ip()), Some(ds1));
    assert_eq!(config.services_of(&ds1.name).count(), 1);
    let cs1 = config.node_named("cs1").unwrap();
    assert_eq!(config.services_of(&cs1.name).count(), 0);
    assert_eq!(config.cluster_addresses_of(&cs1.name), []);
    assert_eq!(
        config.cluster_addresses_of(&ds1.name),
        config.cluster_addresses()
    );
    assert_eq!(config.connection_servers().count(), 1);
    assert_eq!(config.data_servers().count(), 2);
}

#[test]
fn failover() {
    let cs2 = "[[node]]\nname = \"cs2\"\naddress = \"192.0.2.3\"\nroles = [\"cs\"]\n\n[[node]]\nname = \"ds1\"";
    let two = SAMPLE.replace("[[node]]\nname = \"ds1\"", cs2);
    let names = |config: &Config| -> Vec<String> {
        let failover = config.failover.as_ref().unwrap();
        failover
            .candidates
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    let without = parse(&two).unwrap().config;
    assert_eq!(without.failover, None);
    let alone = parse(&(SAMPLE.to_owned() + "\n[failover]\n")).unwrap();
    assert!(alone.warnings[0].problem.what.contains("only candidate"));

    let config = parse(&(two.clone() + "\n[failover]\n")).unwrap().config;
    assert_eq!(names(&config), ["cs1", "cs2"]);
    let failover = config.failover.as_ref().unwrap();
    assert_eq!(
        (failover.detection, failover.preempt, failover.address),
        (Duration::from_millis(300), false, FrontAddress::Managed)
    );

    let other = "\n[failover]\ncandidates = [\"cs2\"]\ndetection = \"1s\"\npreempt = true\naddress = \"routed\"\n";
    let config = parse(&(two + other)).unwrap().config;
    assert_eq!(names(&config), ["cs2"]);
    let failover = config.failover.as_ref().unwrap();
    assert_eq!(
        (failover.detection, failover.preempt, failover.address),
        (Duration::from_secs(1), true, FrontAddress::Routed)
    );
    // A node that is no candidate does not get packets for the cluster addresses.
    let address = config.cluster_addresses()[0];
    let fronts = |name| config.fronts(config.node_named(name).unwrap(), address);
    assert_eq!(
        (fronts("cs1"), fronts("cs2"), fronts("ds1")),
        (false, true, false)
    );
    let takes_part = |name| {
        config
            .failover_of(&config.node_named(name).unwrap().name)
            .is_some()
    };
    assert_eq!((takes_part("cs1"), takes_part("cs2")), (false, true));
}

/// `relay_to` gives the addresses of a service's servers that run in containers.
#[test]
fn servers_in_containers() {
    let text = SAMPLE.replace(
        "nodes = [\"ds1\", \"ds2\"]\n",
        "nodes = [\"ds1\", \"ds2\"]\nrelay_to = { ds2 = \"172.17.0.2:8080\" }\n",
    );
    let config = parse(&text).unwrap().config;
    let relay_to = &config.services[0].relay_to;
    assert_eq!(relay_to.of("ds1"), None);
    assert_eq!(relay_to.of("ds2"), Some("172.17.0.2:8080".parse().unwrap()));
}

#[test]
fn weights_of_a_service() {
    let text = SAMPLE.replace(
        "policy = \"round-robin\"\n",
        "weights = { ds1 = 3, ds2 = 0 }\n",
    ) + "\n[[service.pool]]\nname = \"same\"\n[[service.pool]]\nname = \"own\"\nweights.ds2 = 7\n";
    let config = parse(&text).unwrap().config;
    let web = &config.services[0];
    let of = |weights: &Weights| ["ds1", "ds2"].map(|node| weights.of(node));
    assert_eq!(of(&web.weights), [Some(3), Some(0)]);
    assert_eq!(of(&web.pools[0].weights), [Some(3), Some(0)]);
    assert_eq!(of(&web.pools[1].weights), [None, Some(7)]);
    let config = parse(SAMPLE).unwrap().config;
    assert_eq!(of(&config.services[0].weights), [None, None]);
}

/// A service and a pool can have `overflow`; a pool without it has that of its service.
#[test]
fn overflow() {
    let text = SAMPLE.replace(
        "policy = \"round-robin\"\n",
        "policy = \"overflow\"\noverflow = { home = \"ds2\", cpu = 0.8 }\n",
    ) + "\n[[service.pool]]\nname = \"same\"\n\
         [[service.pool]]\nname = \"own\"\noverflow.connections = 7\n\
         [[service.pool]]\nname = \"other\"\npolicy = \"path\"\n";
    let config = parse(&text).unwrap().config;
    let web = &config.services[0];
    let of_service = web.overflow.as_ref().unwrap();
    assert_eq!(of_service.home.as_ref().unwrap().as_str(), "ds2");
    assert_eq!((of_service.cpu, of_service.connections), (Some(800), None));
    assert_eq!(web.pools[0].overflow.as_ref(), Some(of_service));
    let own = web.pools[1].overflow.as_ref().unwrap();
    assert_eq!((&own.home, own.cpu), (&None, None));
    assert_eq!(own.connections.unwrap().get(), 7);
    assert_eq!(web.pools[2].overflow, None);
    // `overflow` has no effect under another policy, and a warning says so.
    let text = SAMPLE.replace("split = \"request\"", "overflow = { cpu = 1 }");
    let loaded = parse(&text).unwrap();
    assert_eq!(loaded.config.services[0].overflow, None);
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
}

/// The pool for large content needs no route.
#[test]
fn large_content() {
    let text = SAMPLE.to_owned()
        + "\n[service.large]\npool = \"films\"\nlarger_than = \"10 MB\"\nroot = \"/srv/www\"\n\
           [[service.pool]]\nname = \"films\"\nnodes = [\"ds2\"]\n";
    let loaded = parse(&text).unwrap();
    assert_eq!(loaded.warnings, []);
    let large = loaded.config.services[0].large.as_ref().unwrap();
    assert_eq!((large.pool, large.larger_than), (0, 10_000_000));
    assert_eq!(large.root, std::path::Path::new("/srv/www"));
    assert_eq!(parse(SAMPLE).unwrap().config.services[0].large, None);
}

#[test]
fn connection_servers_answer_for_their_addresses() {
    let node = "[[node]]\nname = \"cs2\"\naddress = \"192.0.2.3\"\nroles = [\"cs\", \"ds\"]\n";
    let service = "[[service]]\nname = \"other\"\naddress = \"192.0.2.101\"\nport = 80\n\
                   connection_servers = [\"cs2\"]\n";
    let config = parse(&format!("{SAMPLE}\n{node}\n{service}"))
        .unwrap()
        .config;
    let answers = |node: &str| {
        let node = config.node_named(node).unwrap();
        (config.cluster_addresses().into_iter())
            .map(|address| config.answers_for(node, address))
            .collect::<Vec<_>>()
    };
    assert_eq!(answers("cs1"), [true, false]);
    assert_eq!(answers("cs2"), [true, true]);
    assert_eq!(answers("ds1"), [false, false]);
}

#[test]
fn reads_files_and_warns_of_open_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (file, key) = (
        dir.path().join("baton.toml"),
        dir.path().join("cluster.key"),
    );
    fs::write(&file, SAMPLE.replace("/etc/baton/", "")).unwrap();
    fs::write(&key, "ab".repeat(32)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let loaded = Config::read(&file).unwrap();
    assert_eq!(loaded.config.cluster.key, cluster_key(&"ab".repeat(32)));
    assert_eq!(loaded.warnings, []);

    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let loaded = Config::read(&file).unwrap();
    let [warning] = &loaded.warnings[..] else {
        panic!("one warning: {:?}", loaded.warnings)
    };
    assert!(
        warning
            .problem
            .what
            .ends_with("cluster.key holds the key, and others may open it (mode 0640)")
    );
    assert_eq!(warning.place.unwrap().column, 12);

    fs::remove_file(&key).unwrap();
    let error = Config::read(&file).unwrap_err().to_string();
    assert!(
        error.contains("cannot read the key file") && error.contains("No such file"),
        "{error}"
    );
    let error = Config::read(&dir.path().join("none.toml")).unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
}

#[test]
fn a_key_in_a_file_that_others_may_open_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("baton.toml");
    let key = format!("key = \"{}\"", "ab".repeat(32));
    fs::write(
        &file,
        SAMPLE.replace("key_file = \"/etc/baton/cluster.key\"", &key),
    )
    .unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(Config::read(&file).unwrap().warnings.len(), 1);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(Config::read(&file).unwrap().warnings.len(), 0);
}

#[test]
fn doubtful_things_are_warnings() {
    let warnings = |text: &str| -> Vec<String> {
        let loaded = parse(text).unwrap();
        loaded
            .warnings
            .into_iter()
            .map(|warning| warning.problem.what)
            .collect()
    };
    let same = SAMPLE.replace(
        "# previous_key_file = \"/etc/baton/cluster.previous",
        "previous_key_file = \"/etc/baton/cluster",
    );
    assert_eq!(warnings(&same), ["the previous key is the current key"]);
    let idle = SAMPLE
        .replace("policy = \"round-robin\"", "policy = \"weighted\"")
        .replace("nodes = [\"ds1\", \"ds2\"]", "nodes = [\"ds1\"]")
        .replace("weight = 1 ", "weight = 0 ");
    assert_eq!(
        warnings(&idle),
        ["every data server of this service has weight 0: it takes no new connections"]
    );
    let heavy = SAMPLE.replace("roles = [\"cs\"] ", "weight = 3\nroles = [\"cs\"] ");
    assert_eq!(
        warnings(&heavy),
        ["weight has no effect on a node without the role \"ds\" or \"app\""]
    );
    let named = SAMPLE.replace("# also_mac = ", "also_mac = ");
    let config = parse(&named).unwrap().config;
    let cs1 = config.node_named("cs1").unwrap();
    assert_eq!(cs1.also_mac[0].octets(), [0, 0, 0x5e, 0, 1, 10]);
    let idle = SAMPLE.replace(
        "weight = 1 ",
        "also_mac = [\"02:00:00:00:00:01\"]\nweight = 1 ",
    );
    assert!(
        warnings(&idle)
            .iter()
            .all(|what| what.contains("also_mac has no effect")),
        "{:?}",
        warnings(&idle)
    );
    assert!(!warnings(&idle).is_empty());
    let (bare, _) = SAMPLE.split_once("[[service]]").unwrap();
    assert_eq!(
        warnings(bare),
        ["there is no [[service]]: the cluster serves nothing"]
    );
    let open = SAMPLE.replace("cluster.key", "open.key");
    assert_eq!(warnings(&open).len(), 1);
}

#[test]
fn doubtful_pools_and_routes_are_warnings() {
    let warnings = |from: &str, to: &str| -> Vec<String> {
        let text = routed();
        assert!(text.contains(from), "{from}");
        let loaded = parse(&text.replacen(from, to, 1)).unwrap();
        let problems = loaded.warnings.into_iter();
        problems.map(|warning| warning.problem.what).collect()
    };
    assert_eq!(
        warnings(
            "[[service.pool]]",
            "[[service.pool]]\nname = \"spare\"\n[[service.pool]]"
        ),
        ["no route leads to the pool \"spare\""]
    );
    assert_eq!(
        warnings("\"/images/\"", "\"/images/#top\""),
        [
            "the # in \"/images/#top\" only matches %23: clients send neither a # nor what follows it"
        ]
    );
    assert_eq!(
        warnings("\"/images/\"", "\"/a/../images/\""),
        ["the path \"/a/../images/\" is read as servers read it: as \"/images/\""]
    );
    assert_eq!(
        warnings("\"/images/\"", "\"/images/*\""),
        ["the * in \"/images/*\" means itself and nothing else"]
    );
    let text = routed().replacen("weight = 1 ", "weight = 0 ", 1);
    let weightless = |text: String| {
        let loaded = parse(&text).unwrap();
        let problems = loaded.warnings.into_iter();
        let places = problems.map(|warning| (warning.problem.what, warning.place.unwrap().line));
        places.collect::<Vec<_>>()
    };
    assert_eq!(weightless(text.clone()), []);
    let line = text
        .lines()
        .position(|line| line == "[[service.pool]]")
        .unwrap()
        + 1;
    let says = "every data server of this pool has weight 0: it takes no new connections";
    let weighted = text.replace("policy = \"path\"", "policy = \"weighted\"");
    assert_eq!(weightless(weighted.clone()), [(says.to_owned(), line)]);
    let with_weights = weighted.replacen(
        "[[service.pool]]",
        "[[service.pool]]\nweights = { ds1 = 1 }",
        1,
    );
    assert_eq!(weightless(with_weights), []);
    // If a pool has nodes and policy from its service, only the service gets the warning.
    let inherited = text
        .replace("policy = \"round-robin\"", "policy = \"weighted\"")
        .replace("nodes = [\"ds1\", \"ds2\"]", "nodes = [\"ds1\"]")
        .replace("\nnodes = [\"ds1\"]             # default", "\n# default")
        .replace("\npolicy = \"path\"  ", "\n#  ");
    let found = weightless(inherited);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].0.contains("this service has weight 0"),
        "{found:?}"
    );
}

#[test]
fn an_io_server_and_application_nodes_need_no_service() {
    let loaded = parse(
        r#"
        [cluster]
        key_file = "cluster.key"
        [forwarding]
        addresses = ["192.0.2.100", "2001:db8::100"]
        network = "quic"
        buffer = "64KiB"
        policy = "least-loaded"
        [[node]]
        name = "io1"
        address = "192.0.2.2"
        roles = ["io"]
        [[node]]
        name = "app1"
        address = "192.0.2.11"
        roles = ["app"]
        weight = 3
        "#,
    )
    .unwrap();
    assert_eq!(loaded.warnings, []);
    let config = loaded.config;
    let forwarding = config.forwarding.as_ref().unwrap();
    assert_eq!(forwarding.network, ForwardingNetwork::Quic);
    assert_eq!(forwarding.policy, ForwardingPolicy::LeastLoaded);
    assert_eq!(
        (forwarding.port.get(), forwarding.buffer.get()),
        (7727, 65_536)
    );
    assert_eq!(forwarding.addresses.len(), 2);
    assert_eq!(config.io_server().unwrap().name.as_str(), "io1");
    let apps = config.nodes.iter().filter(|node| node.roles.is_app());
    assert_eq!(apps.count(), 1);
    assert_eq!(config.connection_servers().count(), 0);
}

const OWN_KEYS: &str = r#"
    [cluster]
    key_file = "ds1.key"
    previous_key_file = "cluster.previous.key"

    [[node]]
    name = "cs1"
    address = "192.0.2.2"
    roles = ["cs"]

    [[node]]
    name = "ds1"
    address = "192.0.2.11"
    roles = ["ds"]
    own_keys = true

    [[service]]
    name = "web"
    address = "192.0.2.100"
    port = 80
"#;

#[test]
fn the_hash_key_is_made_of_the_current_key_unless_it_is_given() {
    let parse = |cluster: &str| {
        let text = OWN_KEYS.replace("key_file = \"ds1.key\"", cluster);
        common::parse(&text).unwrap().config.cluster
    };
    let made = parse("key_file = \"cluster.key\"");
    assert_eq!(made.given_hash_key, None);
    let secret = made.key.secret().unwrap();
    assert_eq!(made.hash_key(), secret.hash_key());
    let given = HashKey::from_words([0x0011_2233_4455_6677, 0x8899_aabb_ccdd_eeff]);
    for how in [
        "hash_key_file = \"hash.key\"",
        "hash_key = \"00112233445566778899AABBCCDDEEFF\"",
    ] {
        let cluster = parse(&format!("key_file = \"cluster.key\"\n{how}"));
        assert_eq!(cluster.hash_key(), given);
        assert_eq!(cluster.key, made.key);
    }
    // If a node has only its own keys, its key file holds the hash key as well, and `hash_key_file` is not read.
    let own = "key_file = \"ds1.key\"\nhash_key_file = \"not/on/this/node.key\"";
    assert_eq!(parse(own).hash_key(), made.hash_key());
}

/// All nodes have the same configuration file; only the content of `key_file` differs.
#[test]
fn a_node_with_only_its_own_keys() {
    let own = common::parse(OWN_KEYS).unwrap().config;
    let whole = common::parse(&OWN_KEYS.replace("ds1.key", "cluster.key"));
    let whole = whole.unwrap().config;
    assert!(own.cluster.key.secret().is_none());
    let [cs1, ds1, ds2] = [2, 11, 12].map(|last| std::net::Ipv4Addr::new(192, 0, 2, last));
    let pair = |config: &Config, own, other| config.cluster.key.pair(own, other);
    assert!(pair(&own, ds1, cs1).is_some());
    assert_eq!(pair(&own, ds1, cs1), pair(&whole, cs1, ds1));
    // The node cannot speak for others, nor to a node for which it has no key.
    assert_eq!(pair(&own, cs1, ds1), None);
    assert_eq!(pair(&own, ds1, ds2), None);

    assert!(own.this_node("ds1").unwrap().own_keys);
    let refused = own.this_node("cs1").unwrap_err().to_string();
    assert!(refused.contains("this machine is cs1"), "{refused}");
    assert!(refused.contains("those of ds1"), "{refused}");
    assert!(whole.this_node("ds1").is_ok() && whole.this_node("cs1").is_ok());
}

/// A service that redirects leads to HTTPS at the same address: at port 443 if it is there, else at the only one.
#[test]
fn redirects() {
    let of = |text: &str| {
        let loaded = parse(&(SAMPLE.to_owned() + text)).unwrap();
        let warnings: Vec<_> = (loaded.warnings.iter())
            .map(|warning| warning.problem.what.clone())
            .collect();
        let services = &loaded.config.services;
        let ports: Vec<_> = services
            .iter()
            .map(|one| one.redirect.map(u16::from))
            .collect();
        (ports, warnings)
    };
    let https = |port: u16| {
        format!(
            "\n[[service]]\nname = \"tls{port}\"\naddress = \"192.0.2.101\"\nport = {port}\nprotocol = \"tls\"\n\
             tls = \"terminate\"\ncertificates = [\"a.pem\"]\nserver_port = 8080\nhsts = \"max-age=1\"\n"
        )
    };
    let http = "\n[[service]]\nname = \"http\"\naddress = \"192.0.2.101\"\nport = 80\nredirect = \"https\"\n\
                handover = \"never\"\nhead_timeout = \"10s\"\n";
    let to = |port| (vec![None, None, Some(port)], Vec::<String>::new());
    assert_eq!(of(&(https(443) + http)), to(443));
    assert_eq!(of(&(https(8443) + http)), to(8443));
    let three = of(&(https(8443) + http + &https(443)));
    assert_eq!(three.0, [None, None, Some(443), None]);
    let (_, alone) = of(&https(443));
    assert!(
        matches!(&alone[..], [what] if what.starts_with("hsts ")),
        "{alone:?}"
    );
    // The servers are on another data server than the agents that redirect.
    let apart = https(443).replace("server_port = 8080", "server_port = 80\nnodes = [\"ds1\"]");
    assert_eq!(of(&(apart + http + "nodes = [\"ds2\"]\n")), to(443));
}

/// A server at a unix socket is told its client's address by a header field, unless the file says otherwise.
#[test]
fn server_sockets() {
    let of = |port: u16, keys: &str| {
        let service = format!(
            "\n[[service]]\nname = \"tls\"\naddress = \"192.0.2.101\"\nport = {port}\nprotocol = \"tls\"\n\
             tls = \"terminate\"\ncertificates = [\"a.pem\"]\n{keys}"
        );
        let loaded = parse(&(SAMPLE.to_owned() + &service)).unwrap();
        let warnings: Vec<_> = (loaded.warnings.iter())
            .map(|warning| warning.problem.what.clone())
            .collect();
        let terminate = loaded.config.services[1].terminate.clone();
        (terminate.unwrap().server, warnings)
    };
    let socket = |path: &str, client_address| LocalServer::Socket {
        path: path.into(),
        client_address,
    };
    let path = "server_socket = \"/run/web/a.sock\"\n";
    let none = Vec::<String>::new;
    // The default of server_port does not count, even if it is the service's own.
    let expected = socket("/run/web/a.sock", ClientAddress::ForwardedFor);
    assert_eq!(of(80, path), (expected, none()));
    for (word, client_address) in [
        ("x-forwarded-for", ClientAddress::ForwardedFor),
        ("proxy-v1", ClientAddress::ProxyV1),
        ("proxy-v2", ClientAddress::ProxyV2),
    ] {
        let keys = format!("{path}client_address = \"{word}\"\n");
        let expected = socket("/run/web/a.sock", client_address);
        assert_eq!(of(443, &keys), (expected, none()));
    }
    let longest = format!("/run/{}", "a".repeat(102));
    let (server, _) = of(443, &format!("server_socket = \"{longest}\"\n"));
    assert_eq!(server, socket(&longest, ClientAddress::ForwardedFor));
    for folder in ["/tmp", "/home", "/run/user"] {
        let (_, warnings) = of(443, &format!("server_socket = \"{folder}/a.sock\"\n"));
        assert!(warnings[0].contains(folder), "{warnings:?}");
    }
}
