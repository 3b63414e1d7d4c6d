//! Whether this data server may answer a request whose response it is to go on with: such a request comes by no door.

use std::net::SocketAddrV4;

use anyhow::Result;
use baton_abi::{SERVICE_OWNER, SERVICE_RESUME_REST, SERVICE_SIZES};
use baton_core::rules::Request;
use baton_dataplane::OwnPools;

use super::super::judge::Opinion;

/// This data server's own tables.
pub struct Admission {
    pub opinion: Opinion,
    pub pools: OwnPools,
}

impl Admission {
    /// Whether a request to this cluster address and port is for a pool that this data server is in, and its response may go on
    /// elsewhere than it began. Where connection servers follow requests they have found that out.
    pub fn admits(&self, cluster: SocketAddrV4, request: &[u8]) -> Result<bool> {
        let Some(service) = self.pools.service(cluster)? else {
            return Ok(false);
        };
        let flags = u32::from(service.flags);
        if flags & SERVICE_OWNER == 0 {
            return Ok(true);
        }
        let Ok(Some(request)) = Request::read(request) else {
            return Ok(false);
        };
        let Some((lead, _)) = self.opinion.of(service.id, &request) else {
            return Ok(false);
        };
        if let Some(lead) = lead {
            return Ok(lead.resumes && self.pools.is_member(lead.pool)?);
        }
        // It may be one of large content: who has that has it.
        let has_sizes = flags & SERVICE_SIZES != 0;
        let is_here = self.pools.is_member(service.pool)?
            || (has_sizes && self.pools.is_member(service.large)?);
        Ok(flags & SERVICE_RESUME_REST != 0 && is_here)
    }
}
