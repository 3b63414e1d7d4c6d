//! Tables of single packets: name, packet in, verdict, packet out, counters.

use crate::node::{Counted, Node, Verdict};

pub struct Case {
    pub name: &'static str,
    pub input: Vec<u8>,
    pub verdict: Verdict,
    pub out: Out,
    pub counted: Counted<'static>,
}

/// What is expected of the frame that comes out.
pub enum Out {
    /// No frame comes out, because it is dropped.
    Nothing,
    /// The frame comes out as it came in.
    Same,
}

/// Runs every case and reports all that fail.
#[track_caller]
pub fn run(node: &Node, cases: Vec<Case>) {
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let error = check(node, case).err()?;
            Some(format!("{}: {error}", case.name))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases failed:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn check(node: &Node, case: &Case) -> Result<(), String> {
    let seen = node.run(&case.input);
    seen.check(case.verdict, case.counted)?;
    match case.out {
        Out::Nothing => Ok(()),
        Out::Same if seen.frame == seen.input => Ok(()),
        Out::Same => Err(format!("the frame changed: {seen:?}")),
    }
}
