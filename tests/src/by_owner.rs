//! Scenarios that are run a second time, with `routing = "owner"`: the same must hold there.

use toml::{Table, Value};

/// What counts there what these count; empty: another node does.
const COUNTERS: [(&str, &str); 13] = [
    ("cs_handover", "cs_moved_on"),
    ("ds_handed_over", "ds_door_handed_on"),
    // The doors of data servers ask dispatchers.
    ("cs_asked", "ds_asked"),
    ("cs_answered", "ds_answered"),
    ("cs_ask_late", "ds_ask_late"),
    ("cs_ask_dead", "ds_ask_dead"),
    ("cs_ask_lie", "ds_ask_lie"),
    // It only forwards, and each data server releases, withholds, and sends again, what is its own.
    ("cs_request", "cs_forward"),
    ("cs_release", ""),
    ("cs_withheld", ""),
    ("cs_begins", ""),
    ("lccp_sent_again", ""),
    // Owners keep them, and tell their text.
    ("cs_request_kept", "resume_requests_heard"),
];

/// Has the owner of a connection see to its requests in every service of a lab, without these keys.
pub fn let_owners_route(lab: &mut Table, without: &[String]) {
    let config = lab.get_mut("config").and_then(Value::as_table_mut);
    let services = config.and_then(|config| config.get_mut("service")?.as_array_mut());
    let tables = services
        .into_iter()
        .flatten()
        .filter_map(Value::as_table_mut);
    for service in tables {
        for key in without {
            service.remove(key);
        }
        service.insert("routing".into(), "owner".into());
    }
}

/// The counters that a step names, and those in it.
pub fn rename_counters(step: &mut Table) {
    for (old, new) in COUNTERS {
        if let Some(value) = step.remove(old)
            && !new.is_empty()
        {
            step.entry(new).or_insert(value);
        }
    }
    for (_, value) in step.iter_mut() {
        match value {
            Value::Table(inner) => rename_counters(inner),
            Value::Array(list) => {
                list.iter_mut()
                    .filter_map(Value::as_table_mut)
                    .for_each(rename_counters);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_without_what_a_scenario_says() -> Result<(), toml::de::Error> {
        let mut lab: Table =
            "[[config.service]]\nname = 'a'\ndispatcher = 'd'\ndirect = true\n[[config.service]]\nname = 'b'"
                .parse()?;
        let_owners_route(&mut lab, &["dispatcher".to_owned()]);
        let expected: Table = "[[config.service]]\nname = 'a'\ndirect = true\nrouting = 'owner'\n\
            [[config.service]]\nname = 'b'\nrouting = 'owner'"
            .parse()?;
        assert_eq!(lab, expected);
        Ok(())
    }

    #[test]
    fn counters_at_any_depth() -> Result<(), toml::de::Error> {
        let mut step: Table =
            "at_least = { cs_handover = 1, cs_syn = 2 }\nmeanwhile = [{ at_most = { ds_handed_over = 3 } }]"
                .parse()?;
        rename_counters(&mut step);
        let expected: Table =
            "at_least = { cs_moved_on = 1, cs_syn = 2 }\nmeanwhile = [{ at_most = { ds_door_handed_on = 3 } }]"
                .parse()?;
        assert_eq!(step, expected);
        Ok(())
    }
}
