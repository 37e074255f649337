//! Files and pages that must agree with the table of settings.

use super::*;

/// The default of a key, as a TOML file writes it.
fn default_text(key: &Key) -> String {
    match key.kind {
        Kind::Whole { default, .. } => default.to_string(),
        Kind::Address { default } | Kind::Folder { default } | Kind::OneOf { default, .. } => {
            format!("{default:?}")
        }
        Kind::OptionalAddress => "\"\"".to_owned(),
        Kind::Text { default, .. } => format!("{default:?}"),
        Kind::Switch { default } => default.to_string(),
        Kind::Tokens => "[]".to_owned(),
    }
}

#[test]
fn the_standalone_file_names_every_key_with_its_default_and_sentence() {
    let path = workspace().join("config/standalone.toml");
    assert_eq!(Settings::load(Some(&path), variables(&[]), []).unwrap(), defaults());

    let text = fs::read_to_string(&path).unwrap();
    let mut section = "";
    let mut found = Vec::new();

    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((name, value)) =
            line.split_once(" = ").filter(|_| !line.starts_with('#'))
        {
            let above = text
                .lines()
                .nth(index.wrapping_sub(1))
                .unwrap_or_default()
                .trim_start_matches("# ");
            found.push(format!("{section}.{name} = {value} # {above}"));
        }
    }

    let expected: Vec<_> = KEYS
        .iter()
        .chain(keys::portal::KEYS)
        .map(|key| format!("{} = {} # {}", key.path(), default_text(key), key.doc))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_cluster_file_names_every_key_of_the_cluster_with_its_sentence() {
    let path = workspace().join("config/cluster.toml");
    let settings = Settings::load(Some(&path), variables(&[]), []).unwrap();
    assert!(settings.cluster.is_cluster && settings.cluster.catalog_is_mysql);
    let text = fs::read_to_string(&path).unwrap();
    for key in keys::cluster::KEYS {
        let section =
            text.split(&format!("\n[{}]\n", key.section)).nth(1).expect("every section is there");
        let section = section.split("\n[").next().unwrap();
        assert!(section.contains(&format!("# {}\n{} = ", key.doc, key.name)), "{}", key.path());
    }
}

#[test]
fn the_documentation_has_a_row_for_every_key() {
    let row = |key: &Key| {
        let takes = match key.kind {
            Kind::Whole { min, max, unit, .. } => format!("{unit}, {min} to {max}"),
            Kind::Address { .. } => "IP address or `localhost`, and port".to_owned(),
            Kind::OptionalAddress => "IP address or `localhost`, and port; or nothing".to_owned(),
            Kind::Folder { .. } => "path of a folder".to_owned(),
            Kind::OneOf { words, .. } => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }
            Kind::Text { is_secret: false, .. } => "text".to_owned(),
            Kind::Text { is_secret: true, .. } => "text, secret".to_owned(),
            Kind::Switch { .. } => "`true`, `false`".to_owned(),
            Kind::Tokens => "list of tables".to_owned(),
        };
        format!("| `{}` | `{}` | {takes} | {} |", key.path(), default_text(key), key.doc)
    };

    let page = fs::read_to_string(workspace().join("docs/configuration.md")).unwrap();
    let is_row =
        |line: &&str| keys::all().any(|key| line.starts_with(&format!("| `{}.", key.section)));
    let found: Vec<_> = page.lines().filter(is_row).collect();
    let expected: Vec<_> = keys::all().map(row).collect();

    assert_eq!(found, expected, "docs/configuration.md should say:\n{}", expected.join("\n"));

    for scope in Scope::ALL {
        assert!(
            page.contains(&format!("| `{scope}` |")),
            "docs/configuration.md should explain the scope {scope}"
        );
    }
}

#[test]
fn the_table_repeats_no_key_and_keeps_defaults_in_range() {
    let paths: BTreeSet<_> = keys::all().map(Key::path).collect();
    assert_eq!(paths.len(), keys::all().count());
    for key in keys::all() {
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
    let written = |text: &str| load(text, &[]).expect("settings").cluster.cql.writes_tables;
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
