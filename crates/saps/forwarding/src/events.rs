//! The events of a channel on their way to the channel's owner, which may be slower than the other end.
//!
//! No event may be lost, and the code that makes events must not wait while it has the channel locked. So events
//! queue, and a link is not read while many wait: an end that floods the owner with requests waits in its own send().

use std::sync::Arc;

use baton_saps_protocol::Event;
use tokio::sync::{mpsc, watch};

/// The number of waiting events at which a link is no longer read. Frames that were read before can still add events.
const MANY: usize = 1024;

/// Counts the events that wait.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: watch::Sender<usize>,
}

/// The channel's end of the queue.
#[derive(Debug)]
pub(crate) struct Teller {
    queue: mpsc::UnboundedSender<Event>,
    backlog: Arc<Backlog>,
}

/// The owner's end of the queue. Events of connections that have a user already do not come here.
#[derive(Debug)]
pub(crate) struct Events {
    queue: mpsc::UnboundedReceiver<Event>,
    backlog: Arc<Backlog>,
}

pub(crate) fn events() -> (Teller, Events) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let backlog: Arc<Backlog> = Arc::default();
    let teller = Teller {
        queue: sender,
        backlog: Arc::clone(&backlog),
    };
    let events = Events {
        queue: receiver,
        backlog,
    };
    (teller, events)
}

impl Teller {
    /// Queues an event. If the owner is gone, nobody needs the event and it is dropped.
    pub(crate) fn tell(&self, event: Event) {
        // The event is counted before it can be taken, so that the count is never below the number that waits.
        self.backlog.waiting.send_modify(|waiting| *waiting += 1);
        if self.queue.send(event).is_err() {
            self.backlog.take_off();
        }
    }

    pub(crate) fn backlog(&self) -> &Arc<Backlog> {
        &self.backlog
    }
}

impl Events {
    /// Returns the next event, or `None` if the channel no longer exists. Cancel safe.
    pub(crate) async fn recv(&mut self) -> Option<Event> {
        let event = self.queue.recv().await?;
        self.backlog.take_off();
        Some(event)
    }
}

impl Drop for Events {
    /// Takes the waiting events off the count, so that no link waits for an owner that is gone.
    fn drop(&mut self) {
        self.queue.close();
        while self.queue.try_recv().is_ok() {
            self.backlog.take_off();
        }
    }
}

impl Backlog {
    /// Waits until fewer than [`MANY`] events wait.
    pub(crate) async fn wait(&self) {
        // The sender lives as long as `self`.
        let _ = (self.waiting.subscribe())
            .wait_for(|waiting| *waiting < MANY)
            .await;
    }

    fn take_off(&self) {
        self.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_ready(backlog: &Backlog) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(backlog.wait()).poll(&mut cx) == Poll::Ready(())
    }

    #[tokio::test]
    async fn a_link_waits_for_an_owner_that_is_behind_and_not_for_one_that_is_gone() {
        let (teller, mut events) = events();
        for _ in 0..MANY - 1 {
            teller.tell(Event::Down);
        }
        let backlog = Arc::clone(teller.backlog());
        assert!(is_ready(&backlog));
        teller.tell(Event::Down);
        assert!(!is_ready(&backlog));
        let waiting = tokio::spawn(async move { backlog.wait().await });
        tokio::task::yield_now().await;
        assert_eq!(events.recv().await, Some(Event::Down));
        waiting.await.unwrap();
        teller.tell(Event::Down);
        assert!(!is_ready(teller.backlog()));
        drop(events);
        assert!(is_ready(teller.backlog()));
        teller.tell(Event::Down);
        assert_eq!(*teller.backlog().waiting.borrow(), 0);
    }
}
