//! The process that speaks TLS for services with `tls = "terminate"`: the daemon starts it, tells it what to serve, and
//! starts it again if it dies.

use std::{
    net::SocketAddrV4,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use baton_agent::{
    Routing,
    terminate::settings::{Order, Report, ServiceSettings},
};
use baton_config::Service;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};
use tracing::{info, warn};

use crate::locked::locked;

/// The process answers an order within this time. It may have to wait for its predecessor.
const PATIENCE: Duration = Duration::from_secs(15);

/// The time before a process that has died is started again.
const PAUSE: Duration = Duration::from_millis(500);

/// The handle of the daemon to the process.
pub struct TlsAgent {
    orders: mpsc::Sender<Ordered>,
    counts: Arc<Mutex<Vec<(String, u64)>>>,
}

/// An order, and where the answer to it goes.
struct Ordered {
    order: Order,
    answer: oneshot::Sender<Result<()>>,
}

impl TlsAgent {
    /// Begins to look after the process, which starts with the first service. A successor finds it in this directory.
    pub fn start(run_dir: &Path) -> Self {
        let (orders, ordered) = mpsc::channel(4);
        let counts = Arc::default();
        let keeper = Keeper {
            socket: run_dir.join("tls-agent.sock"),
            counts: Arc::clone(&counts),
            services: Vec::new(),
        };
        tokio::spawn(keeper.run(ordered));
        Self { orders, counts }
    }

    /// Has the process serve exactly these services from now on.
    ///
    /// # Errors
    /// The process cannot, for instance because of a certificate, or does not run. It then serves what it served before.
    pub async fn serve(&self, services: Vec<ServiceSettings>) -> Result<()> {
        self.order(Order::Serve(services)).await
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
        locked(&self.counts).clone()
    }
}

/// What the process is to do for a service of this node; `None` if its servers speak TLS themselves.
/// Paths of certificates begin in `directory`, which is that of the configuration file.
pub fn settings(
    address: SocketAddrV4,
    service: &Service,
    directory: &Path,
) -> Option<ServiceSettings> {
    let terminate = service.terminate.as_ref()?;
    Some(ServiceSettings {
        name: service.name.to_string(),
        address,
        server_port: terminate.server_port.get(),
        certificates: (terminate.certificates.iter())
            .map(|file| directory.join(file))
            .collect(),
        head_timeout: service.head_timeout,
        mark: Routing::default().mark,
    })
}

/// The task that looks after the process.
struct Keeper {
    socket: PathBuf,
    counts: Arc<Mutex<Vec<(String, u64)>>>,
    /// The services that the process serves, or is to serve.
    services: Vec<ServiceSettings>,
}

/// The process, and the way to and from it.
struct Process {
    child: Child,
    orders: ChildStdin,
    reports: Lines<BufReader<ChildStdout>>,
}

impl Keeper {
    async fn run(mut self, mut ordered: mpsc::Receiver<Ordered>) {
        let mut process = None;
        loop {
            let next = tokio::select! {
                next = ordered.recv() => next,
                () = self.listen(&mut process) => {
                    process = self.again().await;
                    continue;
                }
            };
            let Some(Ordered { order, answer }) = next else {
                return;
            };
            let outcome = self.obey(&mut process, order).await;
            // The daemon waits for it.
            let _ = answer.send(outcome);
        }
    }

    /// Reads the reports of the process. Ends when the process has died.
    async fn listen(&self, process: &mut Option<Process>) {
        let Some(process) = process else {
            return std::future::pending().await;
        };
        while let Some(report) = process.report().await {
            if let Report::Counted(counts) = report {
                *locked(&self.counts) = counts;
            }
        }
        let ended = process.child.wait().await;
        warn!(
            ?ended,
            "the TLS agent has ended, with all its connections: starting it again"
        );
    }

    /// Starts the process that has died once more.
    async fn again(&mut self) -> Option<Process> {
        sleep(PAUSE).await;
        let mut process = None;
        let services = self.services.clone();
        if let Err(error) = self.obey(&mut process, Order::Serve(services)).await {
            warn!("cannot start the TLS agent again: {error:#}");
        }
        process
    }

    /// Has the process obey. One that does not run is started if there is something for it to do.
    async fn obey(&mut self, process: &mut Option<Process>, order: Order) -> Result<()> {
        let has_work = matches!(&order, Order::Serve(services) if !services.is_empty());
        if process.is_none() && !has_work {
            return Ok(());
        }
        let running = match process {
            Some(running) => running,
            None => process.insert(Process::start(&self.socket)?),
        };
        let answer = timeout(PATIENCE, running.obey(&order)).await;
        match answer.context("the TLS agent does not answer").flatten()? {
            Some(Report::Applied { warnings }) => {
                for warning in warnings {
                    warn!("{warning}");
                }
                if let Order::Serve(services) = order {
                    self.services = services;
                }
                Ok(())
            }
            Some(Report::Refused { why }) => bail!("{why}"),
            Some(Report::Counted(_)) => Ok(()),
            None if matches!(order, Order::End) => {
                *process = None;
                Ok(())
            }
            None => {
                *process = None;
                bail!("the TLS agent has ended; its messages are in this log")
            }
        }
    }
}

impl Process {
    /// Starts this program once more, with the verb of the TLS agent. It outlives the daemon if that dies.
    fn start(socket: &Path) -> Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg("tls-agent")
            .arg(socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the TLS agent")?;
        let (Some(orders), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the TLS agent has no pipes");
        };
        info!(pid = child.id(), "started the TLS agent");
        Ok(Self {
            child,
            orders,
            reports: BufReader::new(reports).lines(),
        })
    }

    /// Sends the order, and returns the answer to it; `None` if the process has ended.
    async fn obey(&mut self, order: &Order) -> Result<Option<Report>> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        if self.orders.write_all(&line).await.is_err() {
            return Ok(None);
        }
        loop {
            match self.report().await {
                Some(Report::Counted(_)) => (),
                answer => return Ok(answer),
            }
        }
    }

    /// The next report; `None` when the process has ended.
    async fn report(&mut self) -> Option<Report> {
        loop {
            let line = self.reports.next_line().await.ok()??;
            match serde_json::from_str(&line) {
                Ok(report) => return Some(report),
                Err(error) => warn!(%error, "the TLS agent says what nobody understands"),
            }
        }
    }
}
