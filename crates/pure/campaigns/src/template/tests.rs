use super::*;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const ROOTS: [&str; 3] = ["subject", "cost", "data"];

fn texts(by_locale: &[(&str, &str)]) -> Texts {
    let text = |(locale, text): &(&str, &str)| ((*locale).to_owned(), (*text).to_owned());
    BTreeMap::from([("t".to_owned(), by_locale.iter().map(text).collect())])
}

fn compile(text: &str) -> Result<Templates, Vec<String>> {
    Templates::compile(&texts(&[("en", text)]), &ROOTS)
}

fn problem(text: &str) -> String {
    compile(text).expect_err(text).join("; ")
}

fn render(text: &str, values: Json) -> Result<String, String> {
    compile(text).unwrap().render("t", None, &values).map_err(|error| error.to_string())
}

#[test]
fn values_are_filled_in() {
    let values = json!({
        "subject": "u-7", "cost": 1234,
        "data": {"city": "  Köln ", "none": null, "items": ["tea", "a <b>", 3], "total": 12.50},
    });
    let expected = [
        ("Congratulations, {{ subject }}!", "Congratulations, u-7!"),
        ("{{ cost | decimal(2) }} and {{ cost | decimal(0) }}", "12.34 and 1234"),
        ("{{ data.city | trim | upper }}", "KÖLN"),
        ("{{ data['city'] | trim | lower | truncate(3) }}", "kö…"),
        ("{{ data.city | trim | truncate(4) }}", "Köln"),
        ("{{ data.items | join(', ') }}", "tea, a <b>, 3"),
        ("{{ data.street | default('-') }}{{ data.none | default('-') }}", "--"),
        ("{% if data.street is defined %}a{% elif data.none is none %}b{% endif %}", "b"),
        ("{% if cost > 1000 and not subject in ('a', 'b') %}yes{% endif %}", "yes"),
        ("{{ 'many' if 1 < cost <= 2000 else 'few' }}", "many"),
        ("{% for item in data.items %}{{ loop.index }}{{ item }};{% endfor %}", "1tea;2a <b>;33;"),
        ("{# a note #}{{ data.total }}{% raw %}{{ }}{% endraw %}", "12.5{{ }}"),
    ];
    for (text, expected) in expected {
        assert_eq!(render(text, values.clone()).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn a_value_that_is_missing_is_an_error() {
    let failed = render("one\n{{ data.street }}", json!({"data": {}})).unwrap_err();
    assert_eq!(failed, "template `t` (en), line 2: a value is missing");
    assert!(render("{{ subject }}", json!({})).is_err());
    assert!(render("{{ data.a.b }}", json!({"data": {}})).is_err());
    assert!(render("{{ subject }}", json!({"subject": null})).unwrap_err().contains("missing"));
    assert!(render("{{ data.n | decimal(2) }}", json!({"data": {"n": "x"}})).is_err());
    assert!(render("{{ data.n | decimal(99) }}", json!({"data": {"n": 1}})).is_err());
    let other = compile("").unwrap().render("other", None, &json!({})).unwrap_err();
    assert_eq!(other.to_string(), "there is no template `other`");
}

#[test]
fn a_template_is_refused_with_its_line() {
    let expected = [
        ("one\n{{ subjct }}", "line 2: there is no value `subjct`, only cost, data, subject"),
        ("{{ data.city | uper }}", "line 1: there is no filter `uper`, only decimal, default"),
        ("{% if data is odd %}{% endif %}", "line 1: there is no test `odd`, only defined, none"),
        ("{% if false %}{{ subject | nope }}{% endif %}", "there is no filter `nope`"),
        ("{% set x = 1 %}", "`set` is not available in templates, only if and for are"),
        ("{% set x %}{% endset %}", "`set` is not available"),
        ("\n\n{% with x = 1 %}{% endwith %}", "line 3: `with` is not available"),
        ("{% filter upper %}{% endfilter %}", "`filter` is not available"),
        ("{% for a in data recursive %}{% endfor %}", "`recursive` is not available"),
        ("{{ data.city ~ 'x' }}", "`~` is not available"),
        ("{{ 'x' * 1000000 }}", "`*` is not available"),
        ("{{ range(9) }}", "functions are not available"),
        ("{{ data.city.upper() }}", "functions are not available"),
        ("{{ subject[1:2] }}", "slices are not available"),
        ("{{ {'a': 1} }}", "maps are not available"),
        ("{{ item }}{% for item in data %}{% endfor %}", "there is no value `item`"),
        ("{% include 'x' %}", "line 1: unknown statement include"),
        ("{% macro m() %}{% endmacro %}", "line 1: unknown statement macro"),
        ("a {{ subject", "line 1: "),
        ("{% if %}", "line 1: "),
    ];
    for (text, expected) in expected {
        let problem = problem(text);
        assert!(problem.starts_with("template `t` (en), line "), "{problem}");
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn a_locale_falls_back_to_a_nearer_one() {
    let all = [("de", "de"), ("en", "en"), ("zh", "zh"), ("zh-TW", "zh-TW")];
    let templates = Templates::compile(&texts(&all), &ROOTS).unwrap();
    let render = |locale| templates.render("t", locale, &json!({})).unwrap();
    assert_eq!(render(Some("zh-TW")), "zh-TW");
    assert_eq!(render(Some("zh_tw")), "zh-TW");
    assert_eq!(render(Some("zh-Hant-HK")), "zh");
    assert_eq!(render(Some("fr")), "en");
    assert_eq!(render(None), "en");

    let render = |all| {
        let templates = Templates::compile(&texts(all), &ROOTS).unwrap();
        templates.render("t", Some("fr-CA"), &json!({})).unwrap()
    };
    assert_eq!(render(&[("en", "en"), ("default", "other")]), "other");
    assert_eq!(render(&[("ms", "ms"), ("id", "id")]), "id");
}

#[test]
fn templates_are_bounded() {
    let long = |len| compile(&"x".repeat(len));
    assert!(long(MESSAGE_TEMPLATE_LEN_MAX).is_ok());
    assert!(long(MESSAGE_TEMPLATE_LEN_MAX + 1).unwrap_err()[0].contains("and at most"));

    let number = |number: usize| format!("t{number}");
    let locales = |count| (0..count).map(|n| (number(n), String::new())).collect();
    let of = |names, count| -> Texts { (0..names).map(|n| (number(n), locales(count))).collect() };
    assert!(Templates::compile(&of(1, LOCALES_MAX), &ROOTS).is_ok());
    assert!(Templates::compile(&of(1, LOCALES_MAX + 1), &ROOTS).is_err());
    assert!(Templates::compile(&of(1, 0), &ROOTS).is_err());
    assert!(Templates::compile(&of(TEMPLATES_MAX, 1), &ROOTS).is_ok());
    assert!(Templates::compile(&of(TEMPLATES_MAX + 1, 1), &ROOTS).is_err());

    for locale in ["", "en us", "en/us", &"e".repeat(NAME_LEN_MAX + 1)] {
        assert!(Templates::compile(&texts(&[(locale, "")]), &ROOTS).is_err(), "{locale}");
    }
    let unnamed = BTreeMap::from([(String::new(), locales(1))]);
    assert!(Templates::compile(&unnamed, &ROOTS).is_err());

    let templates = compile("{{ subject }}").unwrap();
    let of_len = |len| templates.render("t", None, &json!({"subject": "x".repeat(len)}));
    assert!(of_len(MESSAGE_LEN_MAX).is_ok());
    assert!(of_len(MESSAGE_LEN_MAX + 1).is_err());
}

#[test]
fn a_template_bomb_runs_out_of_fuel() {
    let values = json!({"data": vec!["x".repeat(64); 1_000], "subject": "x".repeat(60_000)});
    let depth = 6;
    let nested =
        format!("{}x{}", "{% for a in data %}".repeat(depth), "{% endfor %}".repeat(depth));
    let repeated = "{{ subject }}".repeat(1_000);
    let filtered = format!("{{{{ subject{} }}}}", "|upper|lower".repeat(40));
    for bomb in [nested.as_str(), &repeated, &filtered] {
        let failed = render(bomb, values.clone()).unwrap_err();
        assert!(failed.contains("too much work") || failed.contains("too many"), "{failed}");
    }

    let joined = render("{{ data | join(subject) }}", values).unwrap_err();
    assert!(joined.contains("too long"), "{joined}");
}

#[test]
fn nesting_is_bounded_before_the_stack_is() {
    let parts = [
        ("{{ ", "(", ") }}"),
        ("{{ ", "not ", "subject }}"),
        ("{{ subject ", "and subject ", "}}"),
        ("{{ subject", ".a", " }}"),
        ("{{ subject", "|trim", " }}"),
        ("{{ subject", "['}}']", " }}"),
        ("{{ ", "subject < ", "subject }}"),
        ("{{ ", "1 if subject else ", "2 }}"),
        ("", "{% if subject %}", "{% endif %}"),
        ("{% if subject %}", "{% elif subject %}", "{% endif %}"),
    ];
    for (start, part, end) in parts {
        let text = format!("{start}{}{end}", part.repeat(16_000 / part.len()));
        assert!(problem(&text).contains("line 1"), "{part}");
        let text = format!("{start}{}{end}", part.repeat(10));
        assert_eq!(compile(&text).is_ok(), !matches!(part, "(" | "{% if subject %}"), "{part}");
    }
}

#[test]
fn templates_name_the_values_that_they_use() {
    let text = "{{ subject }}{% for a in data.items %}{{ a.name }}{% endfor %}{{ data.city }}";
    let templates = compile(text).unwrap();
    assert!(templates.has("t") && !templates.has("u"));
    assert_eq!(templates.values().collect::<Vec<_>>(), ["data.city", "data.items", "subject"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any text is refused with a sentence, or renders or fails; it never panics.
    #[test]
    fn any_text_is_a_template_or_is_refused(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{{", "}}", "{%", "%}", "if ", "endif", "for ", "in ", "endfor", "data", "subject", ".",
            "|", "upper", "(", ")", "'", "1", " ", "is ", "defined", "{#", "ü", "\n", "else", "[", "]",
        ]), 0..24),
    ) {
        if let Ok(templates) = compile(&parts.concat()) {
            let _ = templates.render("t", None, &json!({"data": {"data": 1}, "subject": "s"}));
        }
    }
}
