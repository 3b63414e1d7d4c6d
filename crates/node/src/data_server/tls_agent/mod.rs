//! The process that speaks TLS for services with `tls = "terminate"`: the daemon starts it, tells it what to serve and
//! by what it judges requests, and has its connections move.
//!
//! The process outlives a daemon that is killed or replaced. It connects to the next daemon, which goes on with it if it
//! is of the same build, and otherwise starts a process of its own, to which the old one hands its listening sockets.

mod context;
mod files;
mod keeper;
mod link;
mod moves;
mod news;
mod relays;
mod tickets;

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddrV4},
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, Result, anyhow};
use baton_agent::{
    Routing,
    terminate::{
        judge::RequestRules,
        settings::{
            Certificate, ClientAddress, RedirectSettings, ServerAddress, ServiceSettings, Settings,
        },
    },
};
use baton_config::{self as config, LocalServer, Service};
use baton_dataplane::DataServer;
use baton_streams::{Ask, Opened, Question};
use tokio::sync::{mpsc, oneshot, watch};

use self::{
    context::AgentContext,
    keeper::Keeper,
    moves::{Mover, Moves},
};
use crate::{local_node::LocalNode, tables::AllChoices};

/// The handle of the daemon to the process.
pub struct TlsAgent {
    orders: mpsc::Sender<Ordered>,
    context: Arc<AgentContext>,
}

/// What the process is to do.
enum Order {
    /// Serve exactly this.
    Serve(Settings),
    /// Have connections without a request leave.
    Release,
    /// End, with all connections.
    End,
}

/// An order, and where the answer to it goes.
struct Ordered {
    order: Order,
    answer: oneshot::Sender<Result<()>>,
}

impl TlsAgent {
    /// Begins to look after the process, which starts with the first service. Processes find the daemon in its
    /// `run_dir`. Questions and channels of other daemons are for the process that serves.
    pub fn start(
        local: &LocalNode,
        choices: watch::Receiver<AllChoices>,
        from_others: (mpsc::Receiver<Question>, mpsc::Receiver<Opened>),
    ) -> Result<Self> {
        let settings = &local.config.local;
        let directory = settings.run_dir.join("tls");
        let listener = files::listen(&directory)
            .with_context(|| format!("cannot listen in {}", directory.display()))?;
        let context = Arc::new(AgentContext::new(choices));
        let (orders, ordered) = mpsc::channel(4);
        let keeper = Keeper::new(
            (directory, listener),
            settings.tls_user.clone(),
            Arc::clone(&context),
        );
        tokio::spawn(keeper.run(ordered, from_others));
        Ok(Self { orders, context })
    }

    /// Has the process serve exactly this from now on.
    ///
    /// # Errors
    /// The process cannot, for instance because of a certificate, or does not run. It then serves what it served before.
    pub async fn serve(&self, settings: Settings) -> Result<()> {
        self.order(Order::Serve(settings)).await
    }

    /// Sets by which rules requests are judged (`None`: that is not known), and how the data servers are asked to which
    /// connections may move.
    pub fn judge(
        &self,
        rules: Option<RequestRules>,
        asks: HashMap<Ipv4Addr, Ask>,
        server: &DataServer,
        local: &LocalNode,
    ) -> Result<()> {
        if rules.is_some() && self.context.mover.get().is_none() {
            let mover = Mover {
                reading: server.reading(local.link.index)?,
                mac: local.link.mac,
                moves: Moves::default(),
            };
            // Only this function sets it, so it is still empty.
            let _ = self.context.mover.set(mover);
        }
        self.context.rules.send_replace(rules.map(Arc::new));
        self.context.reach(asks);
        Ok(())
    }

    /// Has connections without a request leave this data server. Returns at once.
    pub fn release_idle(&self) {
        let (answer, _) = oneshot::channel();
        let order = Order::Release;
        // If others wait, it comes again in a second.
        let _ = self.orders.try_send(Ordered { order, answer });
    }

    /// Ends the process and its connections.
    pub async fn end(&self) {
        // It has ended, whatever the answer.
        let _ = self.order(Order::End).await;
    }

    async fn order(&self, order: Order) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let gone = || anyhow!("the task that looks after the TLS agent has ended");
        let sent = self.orders.send(Ordered { order, answer }).await;
        sent.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// The counters of the process, with their metrics' labels.
    pub fn counts(&self) -> Vec<(String, u64)> {
        self.context.counts()
    }

    /// The certificates that the process shows clients.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.context.certificates()
    }
}

/// What the process is to do for these services of this node. Paths of certificates begin in `directory`, which is that
/// of the configuration file. `kernel_tls`: the kernel may make the records that clients are sent.
pub fn settings(
    services: &[(SocketAddrV4, &Service)],
    directory: &Path,
    kernel_tls: bool,
) -> Settings {
    let redirects = services
        .iter()
        .filter_map(|(at, service)| redirect(*at, service));
    Settings {
        services: (services.iter())
            .filter_map(|(at, service)| terminate(*at, service, directory, kernel_tls))
            .collect(),
        redirects: redirects.collect(),
    }
}

/// How clients of a service are sent to HTTPS; `None` if servers answer them.
fn redirect(address: SocketAddrV4, service: &Service) -> Option<RedirectSettings> {
    Some(RedirectSettings {
        name: service.name.to_string(),
        address,
        https_port: service.redirect?.get(),
        head_timeout: service.head_timeout,
    })
}

/// How the process speaks TLS for a service; `None` if its servers do, or nobody does.
fn terminate(
    address: SocketAddrV4,
    service: &Service,
    directory: &Path,
    kernel_tls: bool,
) -> Option<ServiceSettings> {
    let terminate = service.terminate.as_ref()?;
    Some(ServiceSettings {
        name: service.name.to_string(),
        address,
        server: server_address(&terminate.server),
        http2: terminate.http2,
        certificates: (terminate.certificates.iter())
            .map(|file| directory.join(file))
            .collect(),
        head_timeout: service.head_timeout,
        mark: Routing::default().mark,
        has_routes: service.routes_inside_tls(),
        hsts: terminate.hsts.as_ref().map(ToString::to_string),
        kernel_tls,
    })
}

/// The place where the process finds the local server.
pub fn server_address(server: &LocalServer) -> ServerAddress {
    match server {
        LocalServer::Port(port) => ServerAddress::Port(port.get()),
        LocalServer::Socket {
            path,
            client_address: setting,
        } => ServerAddress::Socket {
            path: path.clone(),
            client_address: client_address(*setting),
        },
    }
}

/// How a server at a unix socket is told the client's address.
fn client_address(setting: config::ClientAddress) -> ClientAddress {
    match setting {
        config::ClientAddress::ForwardedFor => ClientAddress::ForwardedFor,
        config::ClientAddress::ProxyV1 => ClientAddress::ProxyV1,
        config::ClientAddress::ProxyV2 => ClientAddress::ProxyV2,
    }
}
