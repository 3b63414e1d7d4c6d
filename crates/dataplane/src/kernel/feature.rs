//! What the programs of `bpf/` use of a kernel, by feature, and the first Linux that has each.

use libbpf_rs::{btf::Btf, btf::types::Func, libbpf_sys as raw};

use super::{
    messages::collect_messages,
    running::{Kernel, Release},
};
use crate::sys;

/// A group of programs that is loaded as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The programs of a connection server.
    ConnectionServer,
    /// The program of a switch.
    Switch,
    /// The programs of a data server.
    DataServer,
    /// The hooks of a control group: application nodes and `baton redsocks`.
    Sockets,
    /// The programs of `baton eop`.
    Eop,
    /// The programs of `baton client-agent`.
    Client,
}

use Part::{Client, ConnectionServer, DataServer, Eop, Sockets, Switch};

impl Part {
    /// The parts of a node with these roles, `ROLE_*` of the ABI.
    pub fn of_roles(roles: u32) -> Vec<Self> {
        let all = [
            (baton_abi::ROLE_CS, ConnectionServer),
            (baton_abi::ROLE_DS, DataServer),
            (baton_abi::ROLE_SWITCH, Switch),
        ];
        let has = all.into_iter().filter(|(role, _)| roles & role != 0);
        has.map(|(_, part)| part).collect()
    }
}

/// Something of the kernel that not every Linux has.
#[derive(Debug)]
pub struct Feature {
    /// The name by which people would search for it.
    pub name: &'static str,
    /// The first Linux with it.
    pub since: Release,
    /// What baton does with it: "a data server adopts connections with it".
    pub purpose: &'static str,
    /// The build option without which even a kernel that is new enough lacks it.
    pub option: Option<&'static str>,
    parts: &'static [Part],
    probe: Probe,
}

/// How to find out whether a feature is there.
#[derive(Debug)]
enum Probe {
    /// The kernel's type information lists this function.
    Function(&'static str),
    /// The verifier knows this helper in programs of this type.
    Helper(raw::bpf_prog_type, raw::bpf_func_id),
    /// Only the version tells. An older version proves nothing, because distributions add features to older versions.
    Version,
}

/// All features by version, the newest first. The first one that a kernel lacks says which version is needed.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "bpf_sk_assign_tcp_reqsk",
        since: Release(6, 9),
        purpose: "a data server adopts connections with it",
        option: Some("CONFIG_SYN_COOKIES=y"),
        parts: &[DataServer],
        probe: Probe::Function("bpf_sk_assign_tcp_reqsk"),
    },
    Feature {
        name: "tcx",
        since: Release(6, 6),
        purpose: "the programs of data servers and of aware clients are attached by it",
        option: Some("CONFIG_NET_XGRESS=y, which CONFIG_NET_CLS_ACT=y selects"),
        parts: &[DataServer, Client],
        probe: Probe::Function("tcx_link_attach"),
    },
    Feature {
        name: "bpf_xdp_load_bytes",
        since: Release(5, 18),
        purpose: "a connection server reads requests with it",
        option: None,
        parts: &[ConnectionServer],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_XDP, raw::BPF_FUNC_xdp_load_bytes),
    },
    Feature {
        name: "bpf_xdp_get_buff_len",
        since: Release(5, 18),
        purpose: "a connection server and a switch measure frames in several pieces with it",
        option: None,
        parts: &[ConnectionServer, Switch],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_XDP, raw::BPF_FUNC_xdp_get_buff_len),
    },
    Feature {
        name: "BPF_F_TEST_XDP_LIVE_FRAMES",
        since: Release(5, 18),
        purpose: "packets that the daemon held back or read are sent on with it",
        option: None,
        parts: &[ConnectionServer, DataServer],
        probe: Probe::Version,
    },
    Feature {
        name: "bpf_set_retval",
        since: Release(5, 18),
        purpose: "a program that makes a call on a virtual socket gets the call's error by it",
        option: Some("CONFIG_CGROUP_BPF=y"),
        parts: &[Sockets, Eop],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_CGROUP_SOCKOPT, raw::BPF_FUNC_set_retval),
    },
    Feature {
        name: "bpf_loop",
        since: Release(5, 17),
        purpose: "requests are searched and messages made with it",
        option: None,
        parts: &[ConnectionServer, DataServer],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_XDP, raw::BPF_FUNC_loop),
    },
    Feature {
        name: "bpf_get_netns_cookie for sockets' events",
        since: Release(5, 15),
        purpose: "sockets of other network namespaces are told apart by it",
        option: Some("CONFIG_CGROUP_BPF=y"),
        parts: &[DataServer, Client],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_SOCK_OPS, raw::BPF_FUNC_get_netns_cookie),
    },
    Feature {
        name: "BPF_PROG_TYPE_SYSCALL",
        since: Release(5, 14),
        purpose: "a connection server looks through its table of connections by it",
        option: None,
        parts: &[ConnectionServer],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_SYSCALL, raw::BPF_FUNC_map_lookup_elem),
    },
    Feature {
        name: "bpf_for_each_map_elem",
        since: Release(5, 13),
        purpose: "a connection server looks through its table of connections with it",
        option: None,
        parts: &[ConnectionServer],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_XDP, raw::BPF_FUNC_for_each_map_elem),
    },
    Feature {
        name: "bpf_ktime_get_coarse_ns",
        since: Release(5, 11),
        purpose: "messages between nodes are stamped with the time by it",
        option: None,
        parts: &[ConnectionServer, DataServer, Switch, Sockets],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_XDP, raw::BPF_FUNC_ktime_get_coarse_ns),
    },
    Feature {
        name: "bpf_redirect_neigh",
        since: Release(5, 10),
        purpose: "an aware client sends to the data server itself with it",
        option: None,
        parts: &[Client],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_SCHED_CLS, raw::BPF_FUNC_redirect_neigh),
    },
    Feature {
        name: "bpf_reserve_hdr_opt",
        since: Release(5, 10),
        purpose: "TCP options of handshakes are written with it",
        option: Some("CONFIG_CGROUP_BPF=y"),
        parts: &[DataServer, Client, Eop],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_SOCK_OPS, raw::BPF_FUNC_reserve_hdr_opt),
    },
    Feature {
        name: "bpf_link for XDP",
        since: Release(5, 9),
        purpose: "the program of connection servers and switches is attached by it",
        option: None,
        parts: &[ConnectionServer, Switch],
        probe: Probe::Version,
    },
    Feature {
        name: "cgroup/getpeername",
        since: Release(5, 8),
        purpose: "virtual sockets are told the address of their client by it",
        option: Some("CONFIG_CGROUP_BPF=y"),
        parts: &[Sockets],
        probe: Probe::Version,
    },
    Feature {
        name: "BPF_MAP_TYPE_RINGBUF",
        since: Release(5, 8),
        purpose: "programs tell the daemon by it what they have seen",
        option: None,
        parts: &[ConnectionServer, DataServer, Sockets],
        probe: Probe::Helper(raw::BPF_PROG_TYPE_XDP, raw::BPF_FUNC_ringbuf_reserve),
    },
];

/// Whether a feature is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The feature is there.
    There,
    /// The feature is missing.
    Missing,
    /// This process may not find out, or nothing tells.
    Unknown,
}

/// The features that these parts use, the newest first.
pub fn used_by(parts: &[Part]) -> impl Iterator<Item = &'static Feature> + use<'_> {
    FEATURES
        .iter()
        .filter(|feature| feature.parts.iter().any(|part| parts.contains(part)))
}

/// Each of these features, and whether the kernel that runs has it.
pub fn probe(parts: &[Part], kernel: &Kernel) -> Vec<(&'static Feature, Presence)> {
    // Without this, libbpf would write to standard error what the answer says better.
    collect_messages();
    let btf = Btf::from_vmlinux().ok();
    used_by(parts)
        .map(|feature| (feature, feature.presence(btf.as_ref(), kernel)))
        .collect()
}

impl Feature {
    fn presence(&self, btf: Option<&Btf<'_>>, kernel: &Kernel) -> Presence {
        let there = |is_there| match is_there {
            true => Presence::There,
            false => Presence::Missing,
        };
        match self.probe {
            Probe::Function(name) => btf.map_or(Presence::Unknown, |btf| {
                there(btf.type_by_name::<Func<'_>>(name).is_some())
            }),
            // The probe would tell nothing: the kernel refuses programs that it would take from a process with the
            // privileges for them.
            Probe::Helper(..) if !kernel.may_load => Presence::Unknown,
            Probe::Helper(program, helper) => match sys::has_helper(program, helper) {
                Ok(is_there) => there(is_there),
                Err(_) => Presence::Unknown,
            },
            Probe::Version if kernel.release.is_some_and(|release| release >= self.since) => {
                Presence::There
            }
            Probe::Version => Presence::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_comes_first_and_each_has_a_user() {
        assert!(FEATURES.is_sorted_by(|a, b| a.since >= b.since));
        assert!(FEATURES.iter().all(|feature| !feature.parts.is_empty()));
    }

    #[test]
    fn the_first_kernel_of_each_role() {
        let first = |roles| {
            let parts = Part::of_roles(roles);
            used_by(&parts).next().map(|feature| feature.since)
        };
        assert_eq!(first(baton_abi::ROLE_DS), Some(Release(6, 9)));
        assert_eq!(first(baton_abi::ROLE_CS), Some(Release(5, 18)));
        assert_eq!(first(baton_abi::ROLE_SWITCH), Some(Release(5, 18)));
        assert_eq!(first(0), None);
    }

    #[test]
    fn a_function_is_looked_up_by_its_name() {
        let Ok(btf) = Btf::from_vmlinux() else {
            eprintln!("a_function_is_looked_up_by_its_name: skipped: this kernel has no BTF");
            return;
        };
        let feature = |function| Feature {
            name: "something",
            since: Release(6, 9),
            purpose: "nothing is done with it",
            option: None,
            parts: &[DataServer],
            probe: Probe::Function(function),
        };
        let kernel = Kernel::default();
        let presence = |function, btf| feature(function).presence(btf, &kernel);
        assert_eq!(presence("tcp_v4_rcv", Some(&btf)), Presence::There);
        assert_eq!(presence("tcp_v4_rcv_not", Some(&btf)), Presence::Missing);
        assert_eq!(presence("tcp_v4_rcv", None), Presence::Unknown);
    }

    /// A version that is older than the feature says nothing: distributions add features.
    #[test]
    fn what_only_the_version_tells() {
        let live_frames = FEATURES
            .iter()
            .find(|feature| matches!(feature.probe, Probe::Version))
            .expect("there is one");
        let with = |release| Kernel {
            release,
            ..Kernel::default()
        };
        let presence = |release| live_frames.presence(None, &with(release));
        assert_eq!(presence(Some(live_frames.since)), Presence::There);
        assert_eq!(presence(Some(Release(5, 14))), Presence::Unknown);
        assert_eq!(presence(None), Presence::Unknown);
    }

    /// Helpers are numbered in the order in which Linux got them, so what the programs call is compared with the
    /// table from the first one on that Linux 5.10 did not have.
    #[test]
    fn every_newer_helper_that_a_program_calls_is_listed() {
        const FIRST: raw::bpf_func_id = raw::BPF_FUNC_ktime_get_coarse_ns;
        let listed = |called| {
            FEATURES.iter().any(|feature| match feature.probe {
                Probe::Helper(_, helper) => helper == called,
                _ => false,
            })
        };
        let calls = crate::loading::load::tests::helpers_called();
        assert!(calls.contains(&raw::BPF_FUNC_loop), "{calls:?}");
        for helper in calls.into_iter().filter(|helper| *helper >= FIRST) {
            assert!(listed(helper), "the helper {helper} is in no feature");
        }
    }
}
