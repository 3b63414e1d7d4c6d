//! Looks up the tables as the connection server's program does: a hash map of hosts, and a longest-prefix trie of
//! entries.

use std::collections::HashMap;

use baton_core::routes::{Leads, RouteTable};

/// The program looks at no more bytes of a request's target than this.
pub const LONGEST_TARGET: usize = 120;

/// The program's maps.
pub struct Program {
    /// Host numbers, by name and whether the name is a wildcard.
    hosts: HashMap<(Vec<u8>, bool), u8>,
    /// Entries by service, host number and path. This is the trie's key, whose first three bytes always match as a
    /// whole.
    entries: HashMap<(u16, u8, Vec<u8>), Leads>,
}

impl Program {
    pub fn new(table: &RouteTable) -> Self {
        let host = |host: &baton_core::routes::NumberedHost| {
            ((host.name.clone().into_bytes(), host.wildcard), host.number)
        };
        let entry = |entry: &baton_core::routes::Entry| {
            ((entry.service, entry.host, entry.path.clone()), entry.leads)
        };
        let program = Self {
            hosts: table.hosts.iter().map(host).collect(),
            entries: table.entries.iter().map(entry).collect(),
        };
        // Maps would keep the last of two equal keys, but the tables have no equal keys.
        assert_eq!(program.hosts.len(), table.hosts.len());
        assert_eq!(program.entries.len(), table.entries.len());
        program
    }

    pub fn pool(&self, service: u16, host: Option<&str>, target: &[u8]) -> Option<u16> {
        self.leads(service, host, target)?.pool
    }

    pub fn leads(&self, service: u16, host: Option<&str>, target: &[u8]) -> Option<Leads> {
        let number = host.map_or(0, |host| self.number(host.as_bytes()));
        let target = &target[..target.len().min(LONGEST_TARGET)];
        (0..=target.len()).rev().find_map(|length| {
            let key = (service, number, target[..length].to_vec());
            self.entries.get(&key).copied()
        })
    }

    /// Returns the number of a host: that of the exact name, or of the first wildcard that follows a dot, from the
    /// left, or 0.
    fn number(&self, host: &[u8]) -> u8 {
        let end = host.iter().position(|&byte| byte == b':');
        let name = host[..end.unwrap_or(host.len())].to_ascii_lowercase();
        if let Some(&number) = self.hosts.get(&(name.clone(), false)) {
            return number;
        }
        for dot in (0..name.len()).filter(|&at| name[at] == b'.') {
            if let Some(&number) = self.hosts.get(&(name[dot + 1..].to_vec(), true)) {
                return number;
            }
        }
        0
    }
}
