//! What a process that speaks TLS is told without being asked: all of it at first, and then what changes.

use std::{collections::BTreeMap, future::pending, sync::Arc};

use baton_agent::terminate::{judge::RequestRules, messages::ToAgent};
use baton_tls::TicketKeyRing;
use tokio::sync::watch;

use crate::tables::AllChoices;

/// The news for one process.
pub struct News {
    ticket_keys: watch::Receiver<TicketKeyRing>,
    rules: watch::Receiver<Option<Arc<RequestRules>>>,
    choices: watch::Receiver<AllChoices>,
    /// The choices that it has been told.
    told: AllChoices,
}

impl News {
    /// Begins with all that is known.
    pub fn new(
        mut ticket_keys: watch::Receiver<TicketKeyRing>,
        mut rules: watch::Receiver<Option<Arc<RequestRules>>>,
        mut choices: watch::Receiver<AllChoices>,
    ) -> Self {
        ticket_keys.mark_changed();
        rules.mark_changed();
        choices.mark_changed();
        Self {
            ticket_keys,
            rules,
            choices,
            told: BTreeMap::new(),
        }
    }

    /// Waits for the next news. The keys with which a process goes on come before all else.
    pub async fn next(&mut self) -> Vec<ToAgent> {
        tokio::select! {
            biased;
            Ok(()) = self.ticket_keys.changed() => {
                vec![ToAgent::TicketKeys(self.ticket_keys.borrow_and_update().clone())]
            }
            Ok(()) = self.rules.changed() => {
                let rules = self.rules.borrow_and_update().clone();
                rules.map(ToAgent::Rules).into_iter().collect()
            }
            Ok(()) = self.choices.changed() => self.changed_choices(),
            // The daemon ends.
            else => pending().await,
        }
    }

    fn changed_choices(&mut self) -> Vec<ToAgent> {
        let now = self.choices.borrow_and_update().clone();
        let is_told = |pool, choices| {
            let told = self.told.get(pool);
            told.is_some_and(|told| Arc::ptr_eq(told, choices))
        };
        let news = (now.iter())
            .filter(|(pool, choices)| !is_told(pool, choices))
            .map(|(pool, choices)| ToAgent::Choices(*pool, Arc::clone(choices)))
            .collect();
        self.told = now;
        news
    }
}

#[cfg(test)]
mod tests {
    use baton_agent::terminate::judge::PoolChoices;
    use tokio::time::{Duration, timeout};

    use super::*;

    fn choices(slots: &[u16]) -> Arc<PoolChoices> {
        Arc::new(PoolChoices {
            policy: 0,
            slots: slots.to_vec(),
        })
    }

    /// The next news, described; none if nothing has changed.
    async fn next(news: &mut News) -> Vec<String> {
        let next = timeout(Duration::from_millis(1), news.next()).await;
        let messages = next.unwrap_or_default().into_iter();
        let described = messages.map(|message| format!("{message:?}"));
        (described.map(|text| text.chars().take_while(|byte| *byte != '{').collect())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_is_told_all_at_first_and_then_what_changes() {
        let keys = watch::Sender::new(TicketKeyRing::default());
        let rules = watch::Sender::new(None);
        let all = BTreeMap::from([(1, choices(&[1])), (2, choices(&[2]))]);
        let pools = watch::Sender::new(all);
        let mut news = News::new(keys.subscribe(), rules.subscribe(), pools.subscribe());
        assert!(next(&mut news).await[0].starts_with("TicketKeys"));
        assert!(next(&mut news).await.is_empty(), "no rules are known yet");
        let first = next(&mut news).await;
        assert_eq!(
            first,
            ["Choices(1, PoolChoices ", "Choices(2, PoolChoices "]
        );
        assert!(next(&mut news).await.is_empty());

        rules.send_replace(Some(Arc::default()));
        pools.send_modify(|all| drop(all.insert(2, choices(&[2, 3]))));
        assert!(next(&mut news).await[0].starts_with("Rules"));
        assert_eq!(next(&mut news).await, ["Choices(2, PoolChoices "]);
    }
}
