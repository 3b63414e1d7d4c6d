//! Slow machines, for example emulated ones. On such a machine all times of a scenario are longer by one factor: those
//! that it waits, those of the nodes' configuration, and those after which it gives up. So everything happens in the
//! same order as elsewhere.
//!
//! A busy machine sometimes lets a program wait for a second or two. So nodes of scenarios declare a silent node dead
//! only after three seconds, unless the scenario sets another time because it is about that time.

use std::sync::OnceLock;
use std::time::Duration;

use toml::{Table, Value};

/// The factor by which all times are longer: `BATON_TEST_SLOWNESS`, or 1.
pub fn factor() -> u32 {
    static FACTOR: OnceLock<u32> = OnceLock::new();
    *FACTOR.get_or_init(|| {
        let said = std::env::var("BATON_TEST_SLOWNESS").ok();
        said.and_then(|factor| factor.parse().ok())
            .filter(|factor| *factor > 0)
            .unwrap_or(1)
    })
}

/// How long a scenario waits for what must come. Only a failing run spends all of it, so it is long: a node that
/// starts among three busy labs has been seen to take half a minute.
pub fn patience() -> Duration {
    baton_lab::PATIENCE * factor()
}

/// A number of seconds of an ordinary machine, multiplied by [`factor`].
pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds) * factor()
}

/// Multiplies every duration in a table, such as "500ms", by [`factor`].
pub fn stretch(table: &mut Table) {
    stretch_by(table, factor());
}

/// Multiplies every duration in a lab file by [`factor`]. Before that, it writes into the file the patient values for
/// what the file leaves to the defaults of its nodes, so that these are stretched, too.
pub fn stretch_lab(lab: &mut Table) {
    stretch_lab_by(lab, factor());
}

/// The size of the table of connections. A slow machine needs a second to look through a table of a million entries.
const FLOWS: i64 = 16_384;

/// The keys of a node's configuration that say how long a node may be silent, and how old a message may be that is
/// still read, with the values that lab files get if they do not set them.
const SILENCES: [(&str, &str, &str); 5] = [
    ("cluster", "clock_window", "10s"),
    ("cluster", "hello", "200ms"),
    ("cluster", "silence", "3s"),
    ("cs", "dead_after", "3s"),
    ("failover", "detection", "3s"),
];

/// The keys of a service's health checks, with the values that lab files get if they do not set them.
const CHECKS: [(&str, &str); 2] = [("interval", "1s"), ("timeout", "900ms")];
/// How many checks must fail before a server is taken out. A server that waits for its turn for three seconds fails
/// three.
const FALL: i64 = 5;

fn stretch_lab_by(lab: &mut Table, factor: u32) {
    if let Some(Value::Table(config)) = lab.get_mut("config")
        && config.contains_key("service")
    {
        patient_checks(config);
        let cs = config.entry("cs").or_insert_with(|| Table::new().into());
        if factor != 1
            && let Value::Table(cs) = cs
        {
            cs.entry("flows").or_insert(FLOWS.into());
        }
        for (section, key, default) in SILENCES {
            // A configuration without this section has no failover, so the section must not be added.
            if section == "failover" && !config.contains_key(section) {
                continue;
            }
            let section = config.entry(section).or_insert_with(|| Table::new().into());
            if let Value::Table(section) = section {
                section.entry(key).or_insert_with(|| default.into());
            }
        }
    }
    stretch_by(lab, factor);
}

/// Sets patient health checks for services that leave them to the defaults.
fn patient_checks(config: &mut Table) {
    let services = config.get_mut("service").and_then(Value::as_array_mut);
    for service in services.into_iter().flatten() {
        if let Some(health) = service.get_mut("health").and_then(Value::as_table_mut) {
            for (key, default) in CHECKS {
                health.entry(key).or_insert_with(|| default.into());
            }
            health.entry("fall").or_insert(FALL.into());
        }
    }
}

fn stretch_by(table: &mut Table, factor: u32) {
    if factor != 1 {
        table
            .iter_mut()
            .for_each(|(_, value)| stretch_value(value, factor));
    }
}

fn stretch_value(value: &mut Value, factor: u32) {
    match value {
        Value::String(text) => {
            if let Some(longer) = longer(text, factor) {
                *text = longer;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|one| stretch_value(one, factor)),
        Value::Table(table) => stretch_by(table, factor),
        _ => {}
    }
}

/// A duration multiplied by the factor; `None` for text that is not surely a duration: a number with a unit of time.
fn longer(text: &str, factor: u32) -> Option<String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    ["ms", "s", "m", "h"]
        .contains(&unit)
        .then(|| format!("{}{unit}", number * u64::from(factor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_nothing_else_are_stretched() -> Result<(), toml::de::Error> {
        let mut table: Table =
            "a = '500ms'\nb = ['2s', 'cs1', '64m/x']\nc = { d = '1m', e = 7, f = 'm' }".parse()?;
        stretch_by(&mut table, 4);
        let expected = "a = '2000ms'\nb = ['8s', 'cs1', '64m/x']\nc = { d = '4m', e = 7, f = 'm' }";
        assert_eq!(table, expected.parse()?);
        Ok(())
    }

    #[test]
    fn nodes_are_silent_for_longer() -> Result<(), toml::de::Error> {
        let mut lab: Table =
            "[config.cluster]\nsilence = '3s'\n[[config.service]]\nhealth = { interval = '4s' }"
                .parse()?;
        stretch_lab_by(&mut lab, 2);
        let expected = "[config.cluster]\nsilence = '6s'\nclock_window = '20s'\nhello = '400ms'\n[config.cs]\ndead_after = '6s'\nflows = 16384\n\
                        [[config.service]]\nhealth = { interval = '8s', timeout = '1800ms', fall = 5 }";
        assert_eq!(lab, expected.parse()?);
        Ok(())
    }
}
