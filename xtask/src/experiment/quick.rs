//! What a description becomes where less is measured, or hosts cannot be had.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;

use milieu_bench::Value;
use milieu_bench::description::{Group, Values};

use super::file::{Host, Quick};

/// Tests that quick runs go without, and those that need what is missing.
pub fn leave_out(group: &mut Group, quick: &Quick, missing: &BTreeMap<&str, String>) {
    group.tests.retain(|test| {
        let is_left_out = quick.without.contains(&test.name);
        !is_left_out && !missing.contains_key(test.name.as_str())
    });
}

/// Everything once, and only these values.
pub fn shorten(group: &mut Group, quick: &Quick) {
    for test in &mut group.tests {
        test.schedule.repetitions = NonZeroU32::MIN;
        test.schedule.warm_up = 0;
        let mut levels = vec![&mut test.parameters];
        for server in &mut test.servers {
            levels.push(&mut server.parameters);
            levels.extend(server.applications.iter_mut().map(|it| &mut it.parameters));
        }
        for level in levels {
            for (name, value) in &quick.parameters {
                level
                    .entry(name.clone())
                    .and_modify(|it| it.clone_from(value));
            }
        }
        for variable in &mut test.variables {
            if let Some(values) = quick.values.get(&variable.name) {
                let values = values.clone();
                variable.values = Values::Enumeration { values };
            }
        }
    }
}

/// Each host is an address of this machine, as `emulated-hosts --loopback` has it.
pub fn bring_home(group: &mut Group, hosts: &[Host]) {
    let home = |name: &str| {
        let host = hosts.iter().find(|host| host.name == name)?;
        let [_, rest @ ..] = host.address.octets();
        Some(Ipv4Addr::new(127, rest[0], rest[1], rest[2]).to_string())
    };
    for test in &mut group.tests {
        for server in &mut test.servers {
            server.host = server.host.take().map(|name| home(&name).unwrap_or(name));
        }
        for value in test.parameters.values_mut() {
            if let Value::Text(text) = value {
                *text = home(text).unwrap_or_else(|| text.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milieu_bench::catalogue::Catalogue;
    use milieu_bench::description::{self, Language};
    use milieu_diagnostics::Source;

    fn group() -> Group {
        let text = "[[test]]\nname = \"t\"\nrepetitions = 9\nparameters = { n = 5, at = \"a\" }\n\
                    variable = { name = \"x\", start = 0, end = 100 }\n\
                    [[test.server]]\nhost = \"a\"\n\
                    application = [{ kind = \"k\", parameters = { n = 7 } }]\n";
        let read = description::parse(
            Language::Toml,
            &Source::new("t.toml", text),
            &Catalogue::default(),
        );
        read.unwrap().0
    }

    #[test]
    fn a_quick_run_measures_less_of_the_same() {
        let quick = "parameters = { n = 1, other = 2 }\nvalues = { x = [0, 100] }";
        let mut short = group();
        shorten(&mut short, &toml::from_str(quick).unwrap());
        let test = &short.tests[0];
        assert_eq!(test.schedule.repetitions.get(), 1);
        assert_eq!(
            test.variables[0].all(),
            [Value::Integer(0), Value::Integer(100)]
        );
        assert_eq!(test.parameters["n"], Value::Integer(1));
        assert_eq!(
            test.servers[0].applications[0].parameters["n"],
            Value::Integer(1)
        );
        assert!(!test.parameters.contains_key("other"));
    }

    #[test]
    fn tests_are_left_out_by_name_and_for_what_is_missing() {
        let left = |quick: &str, missing: &[&str]| {
            let mut group = group();
            let missing = missing.iter().map(|it| (*it, String::new())).collect();
            leave_out(&mut group, &toml::from_str(quick).unwrap(), &missing);
            group.tests.len()
        };
        assert_eq!(left("", &[]), 1);
        assert_eq!(left("without = ['other']", &["another"]), 1);
        assert_eq!(left("without = ['t']", &[]), 0);
        assert_eq!(left("", &["t"]), 0);
    }

    #[test]
    fn hosts_become_addresses_of_this_machine() {
        let host = "name = \"a\"\naddress = \"10.31.0.24\"\ndelay-ms = 1";
        let mut home = group();
        bring_home(&mut home, &[toml::from_str(host).unwrap()]);
        let test = &home.tests[0];
        assert_eq!(test.servers[0].host.as_deref(), Some("127.31.0.24"));
        assert_eq!(test.parameters["at"], Value::Text("127.31.0.24".into()));
    }
}
