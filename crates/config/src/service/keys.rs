//! The keys of `[[service]]`, and how they become a [`Service`].

use std::iter;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;

use crate::reading::parsed::Parsed;
use crate::reading::report::Report;
use crate::reading::schema::{keys, table, tables};
use crate::reading::value::{list, plain, text, value};
use crate::service::hsts::Hsts;
use crate::service::policy::Policy;
use crate::service::protocol::{ClientProtocol, UnknownName};
use crate::service::redirect::Redirect;
use crate::service::relay_to::RelayTo;
use crate::service::terminate::{self, ClientAddress, LocalServer, Terminate, TlsMode};
use crate::service::weights::Weights;
use crate::service::{Handover, Service, Split, health, large, overflow, pool, route};
use crate::values::address::ClusterAddress;
use crate::values::duration::{HOUR, SECOND, duration};
use crate::values::members::Members;
use crate::values::name::{NodeName, ServiceName};
use crate::values::number::number;

keys! {
    /// What clients reach: the cluster address and a port.
    Keys "[[service]]", lacks "this service has no" {
        name: ServiceName = text, required "\"…\"", sample "web";
        /// The cluster address.
        address: ClusterAddress = text, required "\"192.0.2.100\", the one clients know", sample "192.0.2.100";
        port: NonZeroU16 = number(1..=u16::MAX), required "80", sample 80;
        /// How a data server is chosen:
        ///   "round-robin"   each in turn
        ///   "weighted"      each in turn, as often as its weight says
        ///   "client"        by the client's address (Maglev hashing: few clients move when a server leaves)
        ///   "path"          by the path of the request, also with Maglev hashing: each server's cache holds its part
        ///   "least-loaded"  each in turn, as often as its weight says, and more often if its node reports fewer
        ///                   connections of the service and less CPU: from 1/8 to 4 times its weight
        ///   "lard"          by the path, as long as no server has far more connections for its weight than
        ///                   the others; then another server gets a part of its paths (locality-aware request
        ///                   distribution)
        ///   "overflow"      one of them, the home, serves all it can; requests beyond its limits are delegated to
        ///                   the others, by their weights, until all of them fit into nine tenths of the limits
        /// Connections are the established ones, also those that are kept alive and idle. CPU is that of the whole
        /// node.
        policy: Policy = text, default "round-robin";
        /// The node that chooses by that policy, and by those of the pools (below). It must have the role "dispatcher".
        /// Data servers ask it, and remember its answers for a second for the same host and path (and client, under
        /// policy "client"), so that they ask only for new ones. By default every data server chooses itself.
        dispatcher: NodeName = text, example "dispatcher1";
        /// The data servers of this service. Default: every node with the role "ds". By `policy`, one of them
        /// serves every request that no route (below) takes.
        nodes: Vec<Spanned<NodeName>> = list(text), sample ["ds1", "ds2"];
        /// Weights for this service, where they differ from the nodes' own weights: 0-255, 0 takes no new connections.
        /// If the connection server is among the nodes, they set how much it delegates: in this example it would serve
        /// three of four requests itself.
        weights: Weights = value(Weights::parse), default {}, example { cs1 = 3, ds1 = 1 };
        /// Data servers whose server is in a container with a network of its own (Docker's bridge): the container's
        /// address, and the port inside it. The node's daemon then relays this service's connections there, from the
        /// clients' addresses. docs/containers.md says when that is needed. By default the server is on the node
        /// itself.
        relay_to: RelayTo = value(RelayTo::parse), default {}, example { ds1 = "172.17.0.2:80" };
        overflow: overflow::Keys = table;
        /// Which connection servers answer for the address. Default: all. Nodes that are connection server and data
        /// server, each with an address of its own, can delegate to each other. All services of one address must agree
        /// on this.
        connection_servers: Vec<Spanned<NodeName>> = list(text), example ["cs1"];
        /// What clients speak: "http", or "tls", of which only the servers have the keys. Then routes see the name of
        /// the server that a client wants (`host`) and the protocols that it offers (`alpn`), and a connection stays
        /// where they lead. There are no paths, methods and other parts of requests, and neither policy "path" nor
        /// "lard". docs/tls.md says more.
        protocol: ClientProtocol = text, default "http";
        /// With "tls", what becomes of a connection that no route takes: "serve", by the nodes above, or "refuse", with
        /// the alert unrecognized_name.
        unknown_name: UnknownName = text, default "serve", example "refuse";
        /// With protocol = "tls", who speaks TLS to the clients: "pass", the servers on the data servers, which have the
        /// keys, or "terminate", each data server's own agent, which speaks HTTP/1 to the server there. Then routes see
        /// each request, and connections move with their requests. docs/https.md says more.
        tls: TlsMode = text, default "pass", example "terminate";
        /// With "terminate": files (PEM), each with a certificate, those that lead from it to a root, and its private
        /// key (mode 0600). The name that a client wants decides between them; the first is for all other clients.
        /// Paths begin at the directory of this file. The files are read at each reload (`baton reload`).
        certificates: Vec<Spanned<PathBuf>> = list(value(terminate::path)), example ["www.example.org.pem"];
        /// With "terminate": the port at which the servers listen for HTTP, at the cluster address or at all addresses.
        server_port: NonZeroU16 = number(1..=u16::MAX), default 80, example 8080;
        /// With "terminate", instead of server_port: the path of a unix socket at which the servers listen for HTTP. The
        /// agent's user (tls_user) and root must be allowed to write to it. docs/https.md says more.
        server_socket: PathBuf = value(terminate::socket), example "/run/nginx/web.sock";
        /// With server_socket: how the servers are told each client's address: "x-forwarded-for", by this header field
        /// of every request, which clients cannot set themselves, or "proxy-v1" or "proxy-v2", by the PROXY protocol at
        /// the beginning of every connection, which servers must expect then.
        client_address: ClientAddress = text, default "x-forwarded-for", example "proxy-v2";
        /// With "terminate": a value for the header field Strict-Transport-Security (HSTS) of all responses whose servers
        /// do not set it. For so many seconds a browser that has seen it uses nothing but HTTPS for this host, even if
        /// the key is removed. "; includeSubDomains" and "; preload" may follow. Default: none.
        hsts: Hsts = text, example "max-age=31536000";
        /// "https": the service needs no servers. The agent of each of its data servers answers every request with a
        /// redirect to the same host and path at the service of this address with protocol = "tls". Give such a service
        /// port 80. docs/https.md says more.
        redirect: Redirect = text, example "https";
        /// With "terminate": whether clients are offered HTTP/2 besides HTTP/1.1. The servers get HTTP/1.1 from both.
        /// docs/https.md says what differs.
        http2: bool = plain, default true, example false;
        /// When the connection is split off to its data server: "request", when the client's first bytes arrive, or
        /// "ack", at the end of the handshake, for protocols in which the server speaks first. With "ack" no request is
        /// known yet, so there are no routes, and neither "path" nor "lard".
        split: Split = text, default "request";
        /// When a connection (of HTTP/1; others never move) goes to another data server, between two requests:
        ///   "as-needed"      when its data server is not, or no longer, among those that are to answer
        ///   "every-request"  a data server is chosen for every request: shares are of requests, not of connections
        ///   "never"          it stays where its first request went. Applications need this that authenticate
        ///                    connections rather than requests (NTLM)
        handover: Handover = text, default "as-needed";
        /// How long a client may take for the head of a request, from its first byte; 1s to 1h. Then it is answered
        /// with 408. With "tls", the connection just ends. Where connections stay where they began ("never" or "tls"
        /// without routes), only the server's own limit applies, unless agents speak TLS in its place or redirect.
        head_timeout: Duration = duration(SECOND..=HOUR), default "60s";
        /// Whether a response goes on when its data server dies in the middle of it: another data server of the pool is
        /// asked for the same, byte by byte, and sends what the client does not have yet. Use it only where every data
        /// server of a pool gives exactly the same answer to a GET or HEAD: for files, not for generated pages.
        /// Responses under way of a data server that drains go on elsewhere at once (`baton drain`). A different
        /// length, ETag or Last-Modified is noticed, and the client's connection is reset; different content alone is
        /// not noticed. The price is a copy of each such request, and a look at the beginning of its response. It is
        /// not possible with split = "ack" or handover = "never". A route (below) can set something else for its
        /// requests.
        resume: bool = plain, default false, example true;
        /// Whether *aware* clients, hosts on which `baton client-agent` was set up, send their packets directly to the
        /// data server as soon as it has announced its address (IPv4). The connection server then sees no more of the
        /// connection. All other clients are served as before. Such a connection moves to the data server of each
        /// request like any other, and the client sends there. Its response is not resumed. These clients must be able
        /// to reach data servers at their own addresses, and behind routers by IP protocol 4. If they cannot, a
        /// connection waits for a second or two before it goes through the connection server again.
        direct: bool = plain, default false, example true;
        large: large::Keys = table;
        health: health::Keys = table, default {};
        pool: Vec<pool::Keys> = tables, default [];
        route: Vec<route::Keys> = tables, default [];
    }
}

impl Keys {
    /// The policies of the service and of its pools that choose by what a request asks for.
    pub(crate) fn policies_by_request(&self) -> impl Iterator<Item = &Spanned<Policy>> {
        let policies = self.pool.iter().map(|pool| &pool.policy);
        let given = iter::once(&self.policy)
            .chain(policies)
            .filter_map(Parsed::given);
        given.filter(|policy| policy.get_ref().needs_request())
    }

    /// Reports what does not fit together within a part of the service.
    pub(crate) fn check(&self, report: &mut Report<'_>) {
        let of_pools = self.pool.iter().map(|pool| &pool.overflow);
        for overflow in iter::once(&self.overflow)
            .chain(of_pools)
            .filter_map(Parsed::get)
        {
            overflow.check(report);
        }
        for route in self.route.items() {
            route.check(report);
        }
        if let Some(health) = self.health.get() {
            health.check(report);
        }
    }

    /// The service, if all of it could be read; `nodes` are its data servers, `targets` the pools
    /// that it names, `https_port` the port to which it redirects.
    pub(crate) fn finish(
        self,
        nodes: Nodes,
        targets: Targets,
        https_port: Option<NonZeroU16>,
    ) -> Option<Service> {
        let policy = self.policy.value()?;
        let weights = self.weights.value()?;
        let overflow = match self.overflow.optional()? {
            None => None,
            Some(keys) => Some(keys.finish()?),
        };
        let pools = self.pool.value()?.into_iter().zip(nodes.pools);
        let routes = self.route.value()?.into_iter().zip(targets.routes);
        let resume = self.resume.value()?;
        let large = match self.large.optional()? {
            None => None,
            Some(keys) => Some(keys.finish(targets.large)?),
        };
        Some(Service {
            name: self.name.value()?,
            address: self.address.value()?,
            port: self.port.value()?,
            policy,
            dispatcher: self.dispatcher.optional()?,
            nodes: nodes.own?,
            connection_servers: nodes.connection_servers?,
            pools: pools
                .map(|(pool, nodes)| pool.finish(nodes, policy, &weights, overflow.as_ref()))
                .collect::<Option<_>>()?,
            routes: routes
                .map(|(route, target)| route.finish(target, resume))
                .collect::<Option<_>>()?,
            large,
            weights,
            relay_to: self.relay_to.value()?,
            overflow: overflow.filter(|_| policy == Policy::Overflow),
            protocol: self.protocol.value()?,
            terminate: match self.tls.value()? {
                TlsMode::Pass => None,
                TlsMode::Terminate => Some(Terminate {
                    certificates: (self.certificates.value()?.into_iter())
                        .map(Spanned::into_inner)
                        .collect(),
                    server: match self.server_socket.optional()? {
                        None => LocalServer::Port(self.server_port.value()?),
                        Some(path) => LocalServer::Socket {
                            path,
                            client_address: self.client_address.value()?,
                        },
                    },
                    hsts: self.hsts.optional()?,
                    http2: self.http2.value()?,
                }),
            },
            redirect: match self.redirect.optional()? {
                None => None,
                Some(Redirect::Https) => Some(https_port?),
            },
            unknown_name: self.unknown_name.value()?,
            split: self.split.value()?,
            handover: self.handover.value()?,
            head_timeout: self.head_timeout.value()?,
            resume,
            direct: self.direct.value()?,
            health: self.health.value()?.finish()?,
        })
    }
}

/// The data servers of a service and of each of its pools, and its connection servers. A list is `None`
/// if it could not be read.
pub(crate) struct Nodes {
    pub(crate) connection_servers: Option<Option<Members>>,
    pub(crate) own: Option<Members>,
    pub(crate) pools: Vec<Option<Members>>,
}

/// The indices of the pools that routes and size classes name; `None` for an unknown name.
pub(crate) struct Targets {
    pub(crate) routes: Vec<Option<usize>>,
    pub(crate) large: Option<usize>,
}

impl Nodes {
    /// The lists of data servers that could be read.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Members> {
        [&self.own].into_iter().chain(&self.pools).flatten()
    }
}
