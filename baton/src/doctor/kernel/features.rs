//! Checks the features of the kernel that a node's programs use (`baton_dataplane::kernel`).

use baton_dataplane::kernel::{Feature, Kernel, Part, Presence, probe};

use crate::doctor::finding::Finding;

/// Each feature that these parts use, and whether the kernel has it.
pub type Probed = Vec<(&'static Feature, Presence)>;

/// Probes the kernel for all features of these parts. It changes nothing.
pub fn look(parts: &[Part], kernel: &Kernel) -> Probed {
    probe(parts, kernel)
}

const NAME: &str = "features";

/// Judges all features in one finding, because a newer kernel adds all that are missing at once.
pub fn judge(probed: &Probed, kernel: &Kernel) -> Finding {
    let of = |wanted: Presence| -> Vec<&Feature> {
        let these = probed.iter().filter(|(_, presence)| *presence == wanted);
        these.map(|(feature, _)| *feature).collect()
    };
    let names = |features: &[&Feature]| -> String {
        let names: Vec<&str> = features.iter().map(|feature| feature.name).collect();
        names.join(", ")
    };
    let (missing, unknown) = (of(Presence::Missing), of(Presence::Unknown));
    if let Some(newest) = missing.first() {
        return Finding::bad(
            NAME,
            format!(
                "this kernel (Linux {}) lacks {}",
                kernel.name,
                names(&missing)
            ),
            format!(
                "Of {}: {}. {}.",
                newest.name,
                newest.purpose,
                sentence(&newest.remedy(kernel.release))
            ),
        );
    }
    // A kernel whose version is new enough has the features that nothing else shows.
    let doubtful: Vec<&Feature> = unknown
        .into_iter()
        .filter(|feature| kernel.release.is_none_or(|release| release < feature.since))
        .collect();
    if let Some(newest) = doubtful.first() {
        return Finding::bad(
            NAME,
            format!(
                "nothing shows that this kernel (Linux {}) has {}",
                kernel.name,
                names(&doubtful)
            ),
            format!(
                "Linux {} is the first that has it. {}.",
                newest.since,
                sentence(&newest.remedy(kernel.release))
            ),
        );
    }
    match probed.first() {
        Some((newest, _)) => Finding::good(
            NAME,
            format!(
                "all {} that are used are there; the newest, {}, came with Linux {}",
                probed.len(),
                newest.name,
                newest.since
            ),
        ),
        None => Finding::good(NAME, "this node loads no programs, so it needs none"),
    }
}

/// A table of the features with a line for each, for people who want all details.
pub fn table(probed: &Probed) -> String {
    let width = probed.iter().map(|(feature, _)| feature.name.len()).max();
    let lines = probed.iter().map(|(feature, presence)| {
        let presence = match presence {
            Presence::There => "there",
            Presence::Missing => "MISSING",
            Presence::Unknown => "unknown",
        };
        format!(
            "{presence:<8}{:<width$}  Linux {:<5} {}\n",
            feature.name,
            feature.since.to_string(),
            feature.purpose,
            width = width.unwrap_or(0)
        )
    });
    lines.collect()
}

/// The text with a capital first letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use baton_dataplane::kernel::{Release, used_by};

    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    fn kernel(name: &str) -> Kernel {
        Kernel {
            name: name.into(),
            release: Release::parse(name),
            ..Kernel::default()
        }
    }

    /// The features that a data server uses. All are present, except that those that came after `until` are in state
    /// `later`.
    fn probed(until: Release, later: Presence) -> Probed {
        used_by(&[Part::DataServer])
            .map(|feature| match feature.since > until {
                true => (feature, later),
                false => (feature, Presence::There),
            })
            .collect()
    }

    #[test]
    fn before_six_nine_nothing_adopts() {
        let found = judge(
            &probed(Release(6, 8), Presence::Missing),
            &kernel("6.8.0-31-generic"),
        );
        assert_eq!(found.verdict(), Bad);
        assert_eq!(
            found.found(),
            "this kernel (Linux 6.8.0-31-generic) lacks bpf_sk_assign_tcp_reqsk"
        );
        let remedy = found.remedy().unwrap_or_default();
        assert!(remedy.contains("Run Linux 6.9 or newer"), "{remedy}");
    }

    #[test]
    fn a_long_term_kernel_lacks_several() {
        let found = judge(&probed(Release(6, 1), Presence::Missing), &kernel("6.1.90"));
        assert!(
            found
                .found()
                .ends_with("lacks bpf_sk_assign_tcp_reqsk, tcx"),
            "{}",
            found.found()
        );
    }

    #[test]
    fn what_cannot_be_probed_is_decided_by_the_version() {
        let unknown = probed(Release(0, 0), Presence::Unknown);
        assert_eq!(judge(&unknown, &kernel("6.12.9")).verdict(), Good);
        let old = judge(&unknown, &kernel("6.1.90"));
        assert_eq!(old.verdict(), Bad);
        assert!(old.found().contains("bpf_sk_assign_tcp_reqsk, tcx"));
        assert_eq!(judge(&unknown, &kernel("")).verdict(), Bad);
    }

    /// Distributions add features to kernels with an old number.
    #[test]
    fn what_is_there_counts_more_than_the_version() {
        let all = probed(Release(9, 9), Presence::Missing);
        assert_eq!(judge(&all, &kernel("5.14.0-503.el9")).verdict(), Good);
        assert_eq!(judge(&Vec::new(), &kernel("4.4")).verdict(), Good);
    }

    #[test]
    fn the_table_has_a_line_for_each() {
        let some = probed(Release(6, 8), Presence::Missing);
        let table = table(&some);
        assert_eq!(table.lines().count(), some.len());
        assert!(
            table.starts_with("MISSING bpf_sk_assign_tcp_reqsk"),
            "{table}"
        );
        assert!(table.contains("Linux 6.6"), "{table}");
    }
}
