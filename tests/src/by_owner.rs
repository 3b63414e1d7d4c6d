//! Scenarios that are run a second time, with `routing = "owner"`: the same must hold there.

use toml::{Table, Value};

/// What counts there what these count; empty: another node does.
const COUNTERS: [(&str, &str); 7] = [
    ("cs_handover", "cs_moved_on"),
    ("ds_handed_over", "ds_door_handed_on"),
    // It only forwards, and each data server releases, withholds, and sends again, what is its own.
    ("cs_request", "cs_forward"),
    ("cs_release", ""),
    ("cs_withheld", ""),
    ("cs_begins", ""),
    ("lccp_sent_again", ""),
];

/// Keys of a service that owners cannot have yet; each is off if it is missing or false.
const WITHOUT: [&str; 2] = ["resume", "dispatcher"];

/// Has the owner of a connection see to its requests in every service of a lab that can have it so, without these keys.
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
        if can_be_owned(service) {
            service.insert("routing".into(), "owner".into());
        }
    }
}

fn can_be_owned(service: &Table) -> bool {
    let has = |table: &Table, key: &str| {
        table
            .get(key)
            .is_some_and(|value| value.as_bool() != Some(false))
    };
    let routes = service.get("route").and_then(Value::as_array);
    let mut routes = routes.into_iter().flatten().filter_map(Value::as_table);
    let resumes = routes.any(|route| has(route, "resume"));
    let others = WITHOUT.iter().any(|key| has(service, key));
    !(resumes || others)
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
    fn only_services_that_owners_can_have() -> Result<(), toml::de::Error> {
        let mut lab: Table = "[[config.service]]\nname = 'a'\n[[config.service]]\nname = 'b'\nresume = true\n\
            [[config.service]]\nname = 'c'\nsplit = 'ack'\n[[config.service]]\nname = 'd'\nresume = false\n\
            [[config.service]]\nname = 'e'\nroute = [{ resume = true }]"
            .parse()?;
        let_owners_route(&mut lab, &[]);
        let services = lab["config"]["service"].as_array().into_iter().flatten();
        let owned: Vec<_> = services
            .filter(|service| service.get("routing").is_some())
            .filter_map(|service| service["name"].as_str())
            .collect();
        assert_eq!(owned, ["a", "c", "d"]);
        Ok(())
    }

    #[test]
    fn what_owners_cannot_have_is_left_out_where_a_scenario_says_so() -> Result<(), toml::de::Error>
    {
        let mut lab: Table =
            "[[config.service]]\nname = 'a'\nresume = true\ndirect = true".parse()?;
        let_owners_route(&mut lab, &["resume".to_owned(), "direct".to_owned()]);
        let expected: Table = "[[config.service]]\nname = 'a'\nrouting = 'owner'".parse()?;
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
