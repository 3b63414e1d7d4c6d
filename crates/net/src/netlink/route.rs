//! Policy rules and local routes, which let a host answer for addresses that are not its own.

use std::net::Ipv4Addr;

use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::route::{RouteMessage, RouteScope, RouteType};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute};
use serde::{Deserialize, Serialize};

use super::{Netlink, all, failed, unless};
use crate::Result;

/// A rule that routes IPv4 packets with `mark` by `table`: `ip rule add fwmark MARK lookup TABLE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkRule {
    /// The mark that packets must have in all 32 bits.
    pub mark: u32,
    /// The routing table.
    pub table: u32,
    /// The rule's place among the rules. Lower ones come first; 0 is the host's local table, 32766 the main table.
    pub priority: u32,
}

/// A route that makes every IPv4 address this host's own, in `table`: `ip route add local 0.0.0.0/0 dev lo table
/// TABLE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalRoute {
    /// The routing table.
    pub table: u32,
}

impl Netlink {
    /// Adds the rule. Returns `false` if it was already there.
    ///
    /// # Errors
    /// [`crate::Error::System`].
    pub async fn add_rule(&self, rule: &MarkRule) -> Result<bool> {
        let request = self.handle.rule().add().v4().action(RuleAction::ToTable);
        let request = request
            .table_id(rule.table)
            .priority(rule.priority)
            .fw_mark(rule.mark);
        let doing = format!("add the rule {}", text(rule));
        unless(
            request.execute().await.map_err(failed(doing)),
            &[libc::EEXIST],
        )
    }

    /// Removes the rule. Returns `false` if there was none.
    ///
    /// # Errors
    /// [`crate::Error::System`].
    pub async fn remove_rule(&self, rule: &MarkRule) -> Result<bool> {
        let mut request = self.handle.rule().add().v4().action(RuleAction::ToTable);
        request = request
            .table_id(rule.table)
            .priority(rule.priority)
            .fw_mark(rule.mark);
        let message = request.message_mut().clone();
        let doing = format!("remove the rule {}", text(rule));
        let removed = self
            .handle
            .rule()
            .del(message)
            .execute()
            .await
            .map_err(failed(doing));
        unless(removed, &[libc::ENOENT])
    }

    /// Whether the rule is there.
    ///
    /// # Errors
    /// [`crate::Error::System`].
    pub async fn has_rule(&self, rule: &MarkRule) -> Result<bool> {
        let request = self.handle.rule().get(rtnetlink::IpVersion::V4);
        let rules = all("list the routing rules", request.execute()).await?;
        Ok(rules.iter().any(|found| {
            let table = found
                .attributes
                .iter()
                .find_map(|attribute| match attribute {
                    RuleAttribute::Table(table) => Some(*table),
                    _ => None,
                });
            table.unwrap_or(u32::from(found.header.table)) == rule.table
                && found.attributes.contains(&RuleAttribute::FwMark(rule.mark))
                && found
                    .attributes
                    .contains(&RuleAttribute::Priority(rule.priority))
        }))
    }

    /// Adds the route. Returns `false` if it was already there.
    ///
    /// # Errors
    /// [`crate::Error::System`].
    pub async fn add_local_route(&self, route: &LocalRoute) -> Result<bool> {
        let message = self.message(route).await?;
        let doing = format!("add a local route to table {}", route.table);
        unless(
            self.handle
                .route()
                .add(message)
                .execute()
                .await
                .map_err(failed(doing)),
            &[libc::EEXIST],
        )
    }

    /// Removes the route. Returns `false` if there was none.
    ///
    /// # Errors
    /// [`crate::Error::System`].
    pub async fn remove_local_route(&self, route: &LocalRoute) -> Result<bool> {
        let message = self.message(route).await?;
        let doing = format!("remove the local route of table {}", route.table);
        let removed = self
            .handle
            .route()
            .del(message)
            .execute()
            .await
            .map_err(failed(doing));
        unless(removed, &[libc::ESRCH, libc::ENOENT])
    }

    async fn message(&self, route: &LocalRoute) -> Result<RouteMessage> {
        let lo = self.link_named("lo").await?;
        Ok(RouteMessageBuilder::<Ipv4Addr>::new()
            .kind(RouteType::Local)
            .scope(RouteScope::Host)
            .table_id(route.table)
            .output_interface(lo.index)
            .build())
    }
}

fn text(rule: &MarkRule) -> String {
    format!(
        "\"fwmark {:#x} lookup {}\" at priority {}",
        rule.mark, rule.table, rule.priority
    )
}
