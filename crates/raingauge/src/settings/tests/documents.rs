//! Files and pages that must agree with the declarations of settings.

use super::*;

#[test]
fn the_standalone_file_names_every_key_with_its_default_and_sentence() {
    let path = workspace().join("config/standalone.toml");
    assert_eq!(Settings::load(Some(&path), variables(&[]), []).unwrap(), defaults());

    let text = fs::read_to_string(&path).unwrap();
    let mut section = "";
    let mut above = "";
    let mut found = Vec::new();

    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if line.contains(" = ") && !line.starts_with('#') {
            found.push(format!("{section}: {above}\n{line}"));
        }
        above = line;
    }

    let expected: Vec<_> = all()
        .filter(|key| !is_of_cluster(key))
        .map(|key| format!("{}: {}", key.section, page::example(key)))
        .collect();
    assert_eq!(found, expected);
}

/// Whether a setting stands in config/cluster.toml, rather than config/standalone.toml.
fn is_of_cluster(key: &Setting) -> bool {
    let sections = ["cluster", "cql", "kafka", "mysql", "reader", "cache"];
    sections.contains(&key.section) || key.name.starts_with("compaction_")
}

#[test]
fn the_cluster_file_names_every_key_of_the_cluster_with_its_sentence() {
    let path = workspace().join("config/cluster.toml");
    let settings = Settings::load(Some(&path), variables(&[]), []).unwrap();
    assert!(settings.cluster.is_cluster() && settings.cluster.catalog_is_mysql());
    let text = fs::read_to_string(&path).unwrap();
    for key in all().filter(|key| is_of_cluster(key)) {
        let section =
            text.split(&format!("\n[{}]\n", key.section)).nth(1).expect("every section is there");
        let section = section.split("\n[").next().unwrap();
        assert!(section.contains(&format!("# {}\n{} = ", key.text, key.name)), "{}", key.path());
    }
}

#[test]
fn the_documentation_has_a_row_for_every_key() {
    let text = fs::read_to_string(workspace().join("docs/configuration.md")).unwrap();
    let is_row = |line: &&str| all().any(|key| line.starts_with(&format!("| `{}.", key.section)));
    let found: Vec<_> = text.lines().filter(is_row).collect();
    let expected: Vec<_> = all().map(page::row).collect();

    assert_eq!(found, expected, "docs/configuration.md should say:\n{}", expected.join("\n"));

    for scope in Scope::ALL {
        assert!(
            text.contains(&format!("| `{scope}` |")),
            "docs/configuration.md should explain the scope {scope}"
        );
    }
}

#[test]
fn the_table_repeats_no_key_and_keeps_defaults_in_range() {
    let paths: BTreeSet<_> = all().map(Setting::path).collect();
    assert_eq!(paths.len(), all().count());
    for key in all() {
        match key.kind {
            Kind::Whole { default, min, max, .. } => {
                assert!((min..=max).contains(&default), "{}", key.path())
            }
            Kind::OneOf { default, words } => assert!(words.contains(&default), "{}", key.path()),
            _ => {}
        }
    }
}

#[test]
fn the_count_tables_are_switched_off_by_either_name() {
    let written = |text: &str| load(text, &[]).expect("settings").cql.writes_tables;
    assert!(written(""));
    for text in
        ["tables = \"no\"", "write_tables = \"no\"", "tables = \"no\"\nwrite_tables = \"yes\""]
    {
        assert!(!written(&format!("[cql]\n{text}")), "{text}");
    }
    let text = "[cluster]\nengines = \"cluster\"\n[cql]\ntables = \"no\"\nread_plan = \"tables\"";
    assert_starts(
        &load(text, &[]).unwrap_err(),
        &["5 cql.read_plan: counts are read from the count tables"],
    );
}
