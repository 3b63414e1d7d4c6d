//! Whether this data server may answer a request whose response it is to go on with: such a request comes by no door.

use anyhow::Result;
use baton_abi::{SERVICE_PATHS, SERVICE_RESUME_REST, SERVICE_SIZES, TcbKey};
use baton_agent::Ends;
use baton_core::rules::Request;
use baton_dataplane::OwnPools;

use crate::data_server::slow_path::Opinion;

/// This data server's own tables.
pub struct Admission {
    pub opinion: Opinion,
    pub pools: OwnPools,
}

impl Admission {
    /// Whether this request is for a pool that this data server is in, and its response, which began at `start`, may go on elsewhere
    /// than there; or this data server has it, and may drain.
    pub fn admits(&self, ends: Ends, request: &[u8], start: u32) -> Result<bool> {
        let (key, cluster) = (TcbKey::of(ends.client, ends.cluster), ends.cluster);
        let Some(service) = self.pools.service(cluster)? else {
            return Ok(false);
        };
        let flags = u32::from(service.flags);
        // Its door has let the request in.
        if self.pools.has_let_in(&key, request, start)? {
            return Ok(true);
        }
        let Ok(Some(request)) = Request::read(request) else {
            return Ok(false);
        };
        // Without routes nothing need be known of any.
        let has_routes = flags & SERVICE_PATHS != 0;
        let opinion = self.opinion.of(service.id, &request);
        if has_routes && opinion.is_none() {
            return Ok(false);
        }
        if let Some((Some(lead), _)) = opinion {
            return Ok(lead.resumes && self.pools.is_member(lead.pool)?);
        }
        // It may be one of large content: who has that has it.
        let has_sizes = flags & SERVICE_SIZES != 0;
        let is_here = self.pools.is_member(service.pool)?
            || (has_sizes && self.pools.is_member(service.large)?);
        Ok(flags & SERVICE_RESUME_REST != 0 && is_here)
    }
}
