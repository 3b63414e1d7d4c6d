//! Fuzzes what data servers report of their doors' counts: bytes that can be read must be the same after they are
//! written and read again.

use baton_wire::Tallies;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Some(tallies) = Tallies::read(bytes) else {
        return;
    };
    let (pools, routes) = (tallies.pools().len(), tallies.routes().len());
    assert!(pools <= Tallies::MOST.0 && routes <= Tallies::MOST.1);
    assert_eq!(Tallies::read(&tallies.write()), Some(tallies));
}
