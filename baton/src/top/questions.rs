//! Asks the node again and again, on a thread of its own, so that a node that answers slowly does not delay the keys.

use std::{
    path::Path,
    sync::mpsc::{self, Receiver, SyncSender, TryRecvError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::rates::View;
use baton_node::{control::status, status::Status};

/// The node's status and the time of its answer, or the reason why there is no answer.
pub type Answer = Result<(Box<Status>, Instant), String>;

/// The thread that asks the node. It ends with the process, or when nobody receives its answers any longer.
pub struct Questions {
    answers: Receiver<Answer>,
}

impl Questions {
    /// Asks once right away, and then starts the thread, which asks again after each `interval`.
    ///
    /// # Errors
    /// No node answers.
    pub fn start(file: &Path, interval: Duration) -> Result<Self> {
        let first = status_now(file)?;
        let (sender, answers) = mpsc::sync_channel(1);
        let file = file.to_owned();
        thread::spawn(move || go_on(&file, interval, first, &sender));
        Ok(Self { answers })
    }

    /// Returns an answer that has come since the last call, if there is one.
    ///
    /// # Errors
    /// The thread has panicked.
    pub fn answer(&self) -> Result<Option<Answer>> {
        match self.answers.try_recv() {
            Ok(answer) => Ok(Some(answer)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => bail!("the thread that asks the node has ended"),
        }
    }
}

fn go_on(
    file: &Path,
    interval: Duration,
    first: (Box<Status>, Instant),
    answers: &SyncSender<Answer>,
) {
    let mut answer = Ok(first);
    while answers.send(answer).is_ok() {
        thread::sleep(interval);
        answer = status_now(file).map_err(|error| format!("{error:#}"));
    }
}

fn status_now(file: &Path) -> Result<(Box<Status>, Instant)> {
    Ok((status(file)?, Instant::now()))
}

/// The last two answers, and the error since then.
#[derive(Default)]
pub struct Answers {
    now: Option<(Box<Status>, Instant)>,
    before: Option<(Box<Status>, Instant)>,
    trouble: Option<String>,
}

impl Answers {
    /// Takes one more answer. After an error, the answers before it are kept.
    pub fn take(&mut self, answer: Answer) {
        match answer {
            Ok(answer) => {
                self.before = self.now.replace(answer);
                self.trouble = None;
            }
            Err(why) => self.trouble = Some(why),
        }
    }

    /// The view that the last two answers give together.
    pub fn view(&self) -> View {
        let Some((now, at)) = &self.now else {
            return View::default();
        };
        let before = self.before.as_ref();
        View::of(
            now,
            before.map(|(before, then)| (&**before, at.duration_since(*then))),
        )
    }

    /// The reason why the view is older than it should be; `None` if it is not.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_node::status::example;

    #[test]
    fn what_was_known_stays_when_the_node_is_gone() {
        let mut answers = Answers::default();
        assert_eq!(answers.view(), View::default());
        let begin = Instant::now();
        answers.take(Ok((Box::new(example()), begin)));
        assert_eq!(answers.view().all.requests, None);
        answers.take(Ok((Box::new(example()), begin + Duration::from_secs(1))));
        assert_eq!(answers.view().all.requests, Some(0.0));
        let view = answers.view();
        answers.take(Err("no node answers".into()));
        assert_eq!(answers.view(), view);
        assert_eq!(answers.trouble(), Some("no node answers"));
        answers.take(Ok((Box::new(example()), begin + Duration::from_secs(2))));
        assert_eq!(answers.trouble(), None);
    }
}
