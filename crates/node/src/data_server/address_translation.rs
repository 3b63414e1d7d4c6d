//! Looks for address translation on this host, which a container engine may set up at any time. One look runs two to
//! four programs, so one task looks for all services of the node.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use baton_net::address_translation::Shown;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(10);

/// Receives the result of the last look; `None` before the first one.
pub type Looks = watch::Receiver<Option<Arc<Shown>>>;

/// Returns the result of the last look if this receiver has not read it yet.
pub fn unread(looks: &mut Looks) -> Option<Arc<Shown>> {
    if !looks.has_changed().unwrap_or(false) {
        return None;
    }
    looks.borrow_and_update().clone()
}

/// Starts a task that looks regularly for as long as a receiver exists. Must be called within a tokio runtime.
pub fn look() -> Looks {
    look_by(Shown::now, PAUSE)
}

fn look_by(look: impl Fn() -> Shown + Copy + Send + 'static, pause: Duration) -> Looks {
    let (show, looks) = watch::channel(None);
    tokio::spawn(async move {
        loop {
            // A look that panics shows nothing, like a look on a host that has none of the programs.
            let shown = spawn_blocking(look).await.unwrap_or_default();
            show.send_replace(Some(Arc::new(shown)));
            tokio::select! {
                () = show.closed() => return,
                () = sleep(pause) => {}
            }
        }
    });
    looks
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    async fn next(looks: &mut Looks) -> Arc<Shown> {
        looks.changed().await.expect("the task looks on");
        looks.mark_changed();
        let shown = unread(looks).expect("a look is shown");
        assert_eq!(unread(looks), None);
        shown
    }

    #[tokio::test]
    async fn one_look_is_for_all_services() {
        static LOOKED: AtomicU32 = AtomicU32::new(0);
        let look = || {
            LOOKED.fetch_add(1, SeqCst);
            Shown::default()
        };
        let looks = look_by(look, Duration::from_secs(3600));
        let mut services = vec![looks.clone(); 50];
        let first = next(&mut services[0]).await;
        for service in &mut services[1..] {
            assert!(Arc::ptr_eq(&first, &next(service).await));
        }
        assert_eq!(LOOKED.load(SeqCst), 1);
    }

    #[tokio::test]
    async fn looks_again() {
        static LOOKED: AtomicU32 = AtomicU32::new(0);
        let look = || {
            LOOKED.fetch_add(1, SeqCst);
            Shown::default()
        };
        let mut looks = look_by(look, Duration::from_millis(1));
        let first = next(&mut looks).await;
        assert!(!Arc::ptr_eq(&first, &next(&mut looks).await));
        assert!(LOOKED.load(SeqCst) >= 2);
    }

    #[tokio::test]
    async fn a_look_that_panics_shows_nothing() {
        let mut looks = look_by(|| panic!("on purpose"), Duration::from_secs(3600));
        assert_eq!(*next(&mut looks).await, Shown::default());
    }
}
