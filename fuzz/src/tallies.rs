//! What data servers tell of what their doors have counted: it is read, or it is not, and what is read is told the same.

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
