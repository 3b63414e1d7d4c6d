//! The connections that programs make.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use baton_core::counters::count;
use baton_dataplane::AppCall;
use tokio::{sync::oneshot, time::timeout};
use tracing::debug;

use crate::{
    Far, FarStream as _, answer::answer, options::Known, refusal, relay::relay, shared::Shared,
};

/// The pause after the first ICMP error. A program that is just entering the kernel misses the error, so it is sent
/// until the socket has ended: again after this time, then after twice and four times this time, and so on.
const TELL_AGAIN: Duration = Duration::from_millis(5);
const TELLINGS: u32 = 8;

/// Serves the connections that programs make.
pub(crate) struct Calls<F> {
    shared: Arc<Shared<F>>,
    port: u16,
    begun: Arc<BegunCalls>,
}

/// The calls that wait for their far end, and those that were answered, until their connections end. An answered call
/// is kept because the agent may hear of a retransmitted SYN only after its answer, and that SYN must begin nothing
/// new.
#[derive(Default)]
pub(crate) struct BegunCalls(Mutex<HashMap<u64, Begun>>);

impl BegunCalls {
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Begun {
    seq: u32,
    /// Dropped when the program's socket has ended.
    _ended: oneshot::Sender<()>,
}

impl<F: Far> Calls<F> {
    pub fn new(shared: Arc<Shared<F>>, begun: Arc<BegunCalls>, port: u16) -> Self {
        Self {
            shared,
            port,
            begun,
        }
    }

    /// Begins a call whose SYN was held back. Does nothing for a retransmission of a known SYN.
    pub fn begin(&self, call: AppCall) {
        let (sender, ended) = oneshot::channel();
        {
            let mut begun = self.begun.lock();
            if (begun.get(&call.cookie)).is_some_and(|known| known.seq == call.seq) {
                return;
            }
            let (seq, _ended) = (call.seq, sender);
            begun.insert(call.cookie, Begun { seq, _ended });
        }
        let (shared, port) = (Arc::clone(&self.shared), self.port);
        let begun = Arc::clone(&self.begun);
        tokio::spawn(async move {
            let joined = serve(&shared, call, port, ended).await;
            if let Some((local, stream, _known)) = joined {
                relay(local, stream, &shared.counters).await;
            }
            let mut begun = begun.lock();
            if (begun.get(&call.cookie)).is_some_and(|known| known.seq == call.seq) {
                begun.remove(&call.cookie);
            }
        });
    }

    /// Ends a call whose socket has given up, or knows that it was refused.
    pub fn end(&self, cookie: u64) {
        let mut begun = self.begun.lock();
        begun.remove(&cookie);
    }
}

async fn serve<F: Far>(
    shared: &Shared<F>,
    call: AppCall,
    port: u16,
    mut ended: oneshot::Receiver<()>,
) -> Option<(tokio::net::TcpStream, F::Stream, Known)> {
    let counters = &shared.counters;
    let answered = tokio::select! {
        answered = shared.far.connect(call.wanted, call.options) => answered,
        _ = &mut ended => {
            count(&counters.calls_given_up);
            return None;
        }
    };
    let connected = match answered {
        Ok(connected) => connected,
        Err(error) if refusal::can_be_told(&error) => {
            debug!(to = %call.wanted, %error, "a call was refused");
            count(&counters.calls_refused);
            tell(call, port, &error, ended).await;
            return None;
        }
        Err(_) => {
            count(&counters.calls_timed_out);
            return None;
        }
    };
    // Without this the program would see its loopback address: wrong, but no reason to refuse the connection.
    if let Err(error) = shared.maps.answer(call.cookie, connected.local) {
        debug!(%error, "cannot note a connection's own address for its program");
    }
    let known = shared.setters.know(call.cookie, connected.stream.setter());
    match answer(call.at, port, call.cookie).await {
        Ok(local) => {
            count(&counters.calls_answered);
            Some((local, connected.stream, known))
        }
        Err(error) => {
            debug!(to = %call.wanted, %error, "a call ended before its answer");
            count(&counters.calls_too_late);
            connected.stream.reset();
            None
        }
    }
}

async fn tell(call: AppCall, port: u16, error: &std::io::Error, mut ended: oneshot::Receiver<()>) {
    let mut pause = TELL_AGAIN;
    for _ in 0..TELLINGS {
        if let Err(failed) = refusal::tell(call.at, port, call.seq, error) {
            tracing::warn!(%failed, "cannot tell a program that its connection was refused");
        }
        if timeout(pause, &mut ended).await.is_ok() {
            return;
        }
        pause *= 2;
    }
}
