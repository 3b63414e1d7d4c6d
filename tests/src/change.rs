//! Changes to TOML files, written as TOML.

use toml::{Table, Value};

/// Merges `change` into `base`. Tables merge key by key. A list whose entries have a `name` is changed by a table with
/// those names as keys: a known entry is merged, an unknown one is appended. The value `{ remove = true }` removes the
/// entry under its key. Any other value replaces the old one.
pub fn merge(base: &mut Table, change: &Table) {
    for (key, new) in change {
        if is_removal(new) {
            base.remove(key);
            continue;
        }
        match (base.get_mut(key), new) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (Some(Value::Array(list)), Value::Table(new)) => merge_named(list, new),
            _ => {
                base.insert(key.clone(), new.clone());
            }
        }
    }
}

/// Removes `long` from a step, and merges it into the step if `long` runs are wanted. Does the same for the steps
/// inside.
pub fn choose_length(step: &mut Table, long: bool) {
    if let Some(Value::Table(more)) = step.remove("long")
        && long
    {
        merge(step, &more);
    }
    let nested = step
        .iter_mut()
        .filter_map(|(_, value)| value.as_array_mut())
        .flatten();
    for inner in nested.filter_map(Value::as_table_mut) {
        choose_length(inner, long);
    }
}

fn merge_named(list: &mut Vec<Value>, changes: &Table) {
    for (name, new) in changes {
        let Value::Table(change) = new else {
            continue;
        };
        let is_it = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(name);
        let at = list.iter().position(is_it);
        match at {
            Some(at) if is_removal(new) => {
                list.remove(at);
            }
            Some(at) => {
                if let Some(Value::Table(entry)) = list.get_mut(at) {
                    merge(entry, change);
                }
            }
            None => {
                let mut entry = Table::from_iter([("name".to_owned(), name.as_str().into())]);
                merge(&mut entry, change);
                list.push(entry.into());
            }
        }
    }
}

fn is_removal(change: &Value) -> bool {
    matches!(change, Value::Table(table) if table.get("remove") == Some(&Value::Boolean(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(base: &str, change: &str) -> Result<Table, toml::de::Error> {
        let (mut base, change) = (base.parse::<Table>()?, change.parse()?);
        merge(&mut base, &change);
        Ok(base)
    }

    #[test]
    fn named_entries_merge_append_and_go() -> Result<(), toml::de::Error> {
        let base = "host = [{ name = 'a', x = 1, y = 1 }, { name = 'b' }]";
        let change = "host.a.x = 2\nhost.b.remove = true\nhost.c.x = 3";
        let expected = "host = [{ name = 'a', x = 2, y = 1 }, { name = 'c', x = 3 }]";
        assert_eq!(merged(base, change)?, expected.parse()?);
        Ok(())
    }

    #[test]
    fn values_and_plain_lists_are_replaced() -> Result<(), toml::de::Error> {
        let gone = merged("a = 1\nb = 2", "a.remove = true")?;
        assert_eq!(gone, "b = 2".parse()?);
        let expected = "a = [2]\nb = { c = 2, d = 1 }";
        assert_eq!(
            merged("a = [1]\nb = { c = 1, d = 1 }", "a = [2]\nb.c = 2")?,
            expected.parse()?
        );
        Ok(())
    }

    #[test]
    fn the_long_form_is_merged_only_when_asked_for() -> Result<(), toml::de::Error> {
        let step: Table = "n = 1\nlong.n = 9\nmeanwhile = [{ m = 1, long.m = 8 }]".parse()?;
        for (long, expected) in [
            (false, "n = 1\nmeanwhile = [{ m = 1 }]"),
            (true, "n = 9\nmeanwhile = [{ m = 8 }]"),
        ] {
            let mut one = step.clone();
            choose_length(&mut one, long);
            assert_eq!(one, expected.parse()?);
        }
        Ok(())
    }
}
