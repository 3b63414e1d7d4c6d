//! The task that keeps a process running that speaks TLS.

use std::{future::pending, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail};
use baton_agent::terminate::{
    messages::ToAgent,
    process,
    settings::{Report, Settings},
};
use baton_streams::{Opened, Question};
use nix::{sys::prctl::set_dumpable, unistd::Gid};
use tokio::{
    net::UnixListener,
    process::{Child, Command},
    sync::mpsc,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tracing::{info, warn};

use super::{
    Order, Ordered,
    context::AgentContext,
    files::{read, share},
    link::Link,
};

/// A process answers an order within this time.
const PATIENCE: Duration = Duration::from_secs(15);
/// A process of an earlier daemon connects within this time, if there is one.
const EARLIER: Duration = Duration::from_millis(300);
/// A process that was started connects within this time.
const STARTS: Duration = Duration::from_secs(10);
/// A process that is to end does so within this time.
const ENDS: Duration = Duration::from_secs(2);
/// The time before a process that has died is started again. It doubles, up to a limit, while that does not succeed.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The task's state.
pub(super) struct Keeper {
    /// The folder that it shares with the processes.
    directory: PathBuf,
    /// The user of the processes, by name.
    user: String,
    context: Arc<AgentContext>,
    /// Processes that have connected.
    links: mpsc::Receiver<Link>,
    /// The process that serves.
    current: Option<Link>,
    /// Processes of other builds, which serve the connections that they have.
    others: Vec<Link>,
    child: Option<Child>,
    /// When the process that has died is started again, and after which pause.
    again: Option<(Instant, Duration)>,
    /// Whether processes of an earlier daemon have had their time to connect.
    has_looked: bool,
    /// What the process serves, or is to serve.
    settings: Settings,
    /// The build of this program: a process of another one serves only the connections that it has.
    build: String,
}

impl Keeper {
    /// Makes the task, with a folder in which is the socket of this listener. Processes of this user connect there.
    pub fn new(
        (directory, listener): (PathBuf, UnixListener),
        user: String,
        context: Arc<AgentContext>,
    ) -> Self {
        let (sender, links) = mpsc::channel(8);
        let of_links = Arc::clone(&context);
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let (context, sender) = (Arc::clone(&of_links), sender.clone());
                        tokio::spawn(async move {
                            if let Some(link) = Link::accept(stream, context).await {
                                // The task ends with the daemon.
                                let _ = sender.send(link).await;
                            }
                        });
                    }
                    Err(error) => {
                        warn!(%error, "cannot accept a TLS agent");
                        sleep(PAUSE).await;
                    }
                }
            }
        });
        Self {
            directory,
            user,
            context,
            links,
            current: None,
            others: Vec::new(),
            child: None,
            again: None,
            has_looked: false,
            settings: Settings::default(),
            build: process::build(),
        }
    }

    /// Obeys orders, and passes on questions and channels, for as long as the daemon lives.
    pub async fn run(
        mut self,
        mut ordered: mpsc::Receiver<Ordered>,
        (mut questions, mut channels): (mpsc::Receiver<Question>, mpsc::Receiver<Opened>),
    ) {
        loop {
            tokio::select! {
                next = ordered.recv() => {
                    let Some(Ordered { order, answer }) = next else {
                        return;
                    };
                    let outcome = self.obey(order).await;
                    // The daemon waits for it.
                    let _ = answer.send(outcome);
                }
                Some(question) = questions.recv() => {
                    if let Some(serving) = self.serving() {
                        serving.ask(question);
                    }
                }
                Some(opened) = channels.recv() => {
                    if let Some(serving) = self.serving() {
                        serving.serve(opened);
                    }
                }
                Some(link) = self.links.recv() => self.meet(link),
                () = ended(&mut self.current) => {
                    warn!("the TLS agent has ended, with all its connections: starting it again");
                    self.current = None;
                    self.again = Some((Instant::now() + PAUSE, PAUSE));
                }
                () = due(self.again) => self.start_again().await,
            }
        }
    }

    /// The process that serves. One that takes over serves nobody before its first order.
    fn serving(&self) -> Option<&Link> {
        self.current.as_ref().filter(|link| link.serves)
    }

    /// Notes a process that has connected.
    fn meet(&mut self, link: Link) {
        self.others.retain(|other| !other.to.is_closed());
        if self.current.is_none() && link.build == self.build {
            self.current = Some(link);
        } else {
            self.others.push(link);
        }
    }

    /// Starts the process that has died once more.
    async fn start_again(&mut self) {
        let before = self.again.take();
        let settings = self.settings.clone();
        if let Err(error) = self.obey(Order::Serve(settings)).await {
            warn!("cannot start the TLS agent again: {error:#}");
            let pause = before.map_or(PAUSE, |(_, pause)| LONGEST_PAUSE.min(pause * 2));
            self.again = Some((Instant::now() + pause, pause));
        }
    }

    /// Has the process obey. One that does not run is started if there is something for it to do.
    async fn obey(&mut self, order: Order) -> Result<()> {
        match order {
            Order::End => {
                self.again = None;
                for link in self.current.take().into_iter().chain(self.others.drain(..)) {
                    let _ = link.to.send(ToAgent::End).await;
                    // One that hangs is left alone.
                    let _ = timeout(ENDS, link.to.closed()).await;
                }
                // What cannot be removed does no harm.
                let _ = std::fs::remove_dir_all(&self.directory);
                Ok(())
            }
            Order::Release => {
                for link in self.current.iter().chain(&self.others) {
                    // One that is busy is told again.
                    let _ = link.to.try_send(ToAgent::Leave);
                }
                Ok(())
            }
            Order::Serve(settings) => {
                self.find_earlier().await;
                if self.current.take_if(|link| link.to.is_closed()).is_some() {
                    self.again = Some((Instant::now() + PAUSE, PAUSE));
                }
                if self.current.is_none() && settings.is_empty() {
                    self.settings = settings;
                    self.again = None;
                    return Ok(());
                }
                if self.current.is_none() {
                    self.start().await?;
                }
                self.serve(settings).await
            }
        }
    }

    async fn serve(&mut self, settings: Settings) -> Result<()> {
        // Private keys and sessions pass through this process as well.
        set_dumpable(false).context("cannot keep private keys out of core dumps")?;
        let current = self.current.as_mut().context("no TLS agent runs")?;
        // An answer that came too late is none to this order.
        while current.reports.try_recv().is_ok() {}
        let wanted = settings.clone();
        let files = spawn_blocking(move || read(&wanted)).await??;
        let order = ToAgent::Serve(settings.clone(), files);
        let gone = || anyhow!("the TLS agent has ended; its messages are in this log");
        current.to.send(order).await.map_err(|_| gone())?;
        let report = timeout(PATIENCE, current.reports.recv()).await;
        match report.context("the TLS agent does not answer")? {
            Some(Report::Applied {
                warnings,
                certificates,
            }) => {
                for warning in warnings {
                    warn!("{warning}");
                }
                current.serves = true;
                self.again = None;
                self.context.show(certificates);
                self.settings = settings;
                Ok(())
            }
            Some(Report::Refused { why }) => {
                if !current.serves {
                    // It has nothing to do.
                    let _ = current.to.send(ToAgent::End).await;
                    self.current = None;
                }
                bail!("{why}")
            }
            None => Err(gone()),
        }
    }

    /// Gives the processes of an earlier daemon the time to connect.
    async fn find_earlier(&mut self) {
        if std::mem::replace(&mut self.has_looked, true)
            || !self.directory.join(process::SUCCESSORS).exists()
        {
            return;
        }
        let until = Instant::now() + EARLIER;
        while let Ok(Some(link)) = timeout_at(until, self.links.recv()).await {
            self.meet(link);
            if self.current.is_some() {
                info!("going on with the TLS agent of the daemon before");
                return;
            }
        }
    }

    /// Starts this program once more, with the verb of the TLS agent. It outlives the daemon if that dies.
    async fn start(&mut self) -> Result<()> {
        let (directory, user) = (self.directory.clone(), self.user.clone());
        // Names of users may come from far.
        let account = spawn_blocking(move || share(&directory, &user)).await??;
        let mut child = Command::new("/proc/self/exe")
            .arg("tls-agent")
            .arg(&self.directory)
            .arg(account.user.to_string())
            .args(
                [account.group]
                    .iter()
                    .chain(&account.groups)
                    .map(Gid::to_string),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the TLS agent")?;
        info!(pid = child.id(), "started the TLS agent");
        let connecting = async {
            while self.current.is_none() {
                match self.links.recv().await {
                    Some(link) => self.meet(link),
                    None => pending().await,
                }
            }
        };
        let outcome = tokio::select! {
            () = connecting => Ok(()),
            ended = child.wait() => {
                let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                Err(anyhow!("the TLS agent has ended at once ({how}); its messages are in this log"))
            }
            () = sleep(STARTS) => {
                // One that has ended meanwhile needs no signal.
                let _ = child.start_kill();
                Err(anyhow!("the TLS agent does not connect"))
            }
        };
        // The one before has ended, or will, and is then collected.
        self.child = Some(child);
        outcome
    }
}

/// Waits until it is time to start a process again; for ever if none has died.
async fn due(again: Option<(Instant, Duration)>) {
    match again {
        Some((at, _)) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Waits until the process that serves has ended.
async fn ended(current: &mut Option<Link>) {
    match current {
        Some(link) => link.to.closed().await,
        None => pending().await,
    }
}
