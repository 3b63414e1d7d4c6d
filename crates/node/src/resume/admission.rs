//! Whether this data server may answer a request whose response it is to continue. No door judges such a request, so
//! this module does.

use anyhow::Result;
use baton_abi::{SERVICE_PATHS, SERVICE_RESUME_REST, SERVICE_SIZES, TcbKey};
use baton_agent::Ends;
use baton_core::rules::Request;
use baton_dataplane::OwnPools;

use crate::data_server::current_rules::RuleReader;

/// Judges requests of resumed responses by this data server's own tables.
pub struct Admission {
    pub rules: RuleReader,
    pub pools: OwnPools,
}

impl Admission {
    /// Whether this data server may give the response to this request; that response begins at `start`. The data server
    /// may if its own routes lead the request to a pool of which it is a member, and allow resume. It also may if its
    /// own door has let this request in, because a data server that drains is asked for its own response first.
    pub fn admits(&self, ends: Ends, request: &[u8], start: u32) -> Result<bool> {
        let (key, cluster) = (TcbKey::of(ends.client, ends.cluster), ends.cluster);
        let Some(service) = self.pools.service(cluster)? else {
            return Ok(false);
        };
        let flags = u32::from(service.flags);
        // The door of this data server has let the request in.
        if self.pools.has_let_in(&key, request, start)? {
            return Ok(true);
        }
        let Ok(Some(request)) = Request::read(request) else {
            return Ok(false);
        };
        // A service without routes needs no opinion of them.
        let has_routes = flags & SERVICE_PATHS != 0;
        let rules = self.rules.of(service.id, &request);
        if has_routes && rules.is_none() {
            return Ok(false);
        }
        if let Some((Some(lead), _)) = rules {
            return Ok(lead.resumes && self.pools.is_member(lead.pool)?);
        }
        // The request may be for large content, so membership in the pool of large content is enough.
        let has_sizes = flags & SERVICE_SIZES != 0;
        let is_here = self.pools.is_member(service.pool)?
            || (has_sizes && self.pools.is_member(service.large)?);
        Ok(flags & SERVICE_RESUME_REST != 0 && is_here)
    }
}
