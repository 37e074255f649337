//! Parses the `raingauge` command lines of the pages, without running them: those in fenced shell
//! code as a whole, those in code spans by their subcommands and options.

use super::Cli;
use clap::{CommandFactory, Parser};
use std::fs;
use std::path::{Path, PathBuf};

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders =
        vec![root.join("docs"), root.join("docs/operations"), root.join("docs/evidence")];
    folders.push(root);

    let mut found = Vec::new();
    for folder in folders {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        found.extend(files.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found
}

/// The text of a page in its fenced shell code, and outside fenced code.
fn shell_and_prose(page: &str) -> (String, String) {
    let mut shell = String::new();
    let mut prose = String::new();
    let mut fence = None;

    for line in page.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_none() { Some(language.trim()) } else { None };
            continue;
        }
        match fence {
            Some("sh") => shell.push_str(&format!("{line}\n")),
            Some(_) => {}
            None => prose.push_str(&format!("{line} ")),
        }
    }

    (shell.replace("\\\n", " "), prose)
}

/// Puts a time into the place of each `$(…)`.
fn without_substitutions(line: &str) -> String {
    let mut parts = line.split("$(");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (_, rest) = part.split_once(')').expect("a substitution ends on its line");
        text.push_str("1727215200");
        text.push_str(rest);
    }
    text
}

/// The words of a line that runs raingauge, without variables before it and what follows it.
fn command(line: &str) -> Option<Vec<String>> {
    let words = shlex::split(&without_substitutions(line))?;
    let words = words.into_iter().skip_while(|word| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|b| b == b'_' || b.is_ascii_uppercase()))
    });
    let words: Vec<String> =
        words.take_while(|word| !["|", "&", "&&", ">", ";"].contains(&word.as_str())).collect();
    (words.first()? == "raingauge").then_some(words)
}

/// What is wrong with the subcommands and options of a code span; its values may be placeholders.
fn fault(span: &str) -> Option<String> {
    let mut command = Cli::command();
    command.build();

    let mut command = &command;

    for word in span.split_whitespace().skip(1).take_while(|word| !word.contains('…')) {
        if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next().unwrap();
            let known = command.get_arguments().any(|argument| argument.get_long() == Some(name));
            if !known && !["help", "version"].contains(&name) {
                return Some(format!("{} has no option --{name}", command.get_name()));
            }
        } else if let Some(inner) = command.find_subcommand(word) {
            command = inner;
        } else if command.has_subcommands() {
            return Some(format!("{} has no command {word}", command.get_name()));
        }
    }

    None
}

#[test]
fn pages_show_commands_that_exist() {
    let mut parsed = 0;
    let mut faults = Vec::new();
    for path in pages() {
        let page = path.display();
        let (shell, prose) = shell_and_prose(&fs::read_to_string(&path).unwrap());

        for words in shell.lines().filter_map(command) {
            parsed += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                faults.push(format!("{page}: {}: {error}", words.join(" ")));
            }
        }

        let spans = prose.split('`').skip(1).step_by(2);
        for span in spans.filter(|span| span.starts_with("raingauge ")) {
            parsed += 1;
            faults.extend(fault(span).map(|fault| format!("{page}: `{span}`: {fault}")));
        }
    }

    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(parsed > 60, "the pages show only {parsed} commands; has their form changed?");
}

#[test]
fn a_wrong_command_of_a_page_is_found() {
    let words =
        command("RUST_LOG=warn raingauge count k --from $(date +%s) --too 900 # now").unwrap();
    assert_eq!(words, ["raingauge", "count", "k", "--from", "1727215200", "--too", "900"]);
    assert!(Cli::try_parse_from(&words).is_err());

    assert_eq!(fault("raingauge counters apply -f FILE --dry-run"), None);
    assert!(fault("raingauge counters aply").unwrap().contains("aply"));
    assert!(fault("raingauge recount KEY --form T").unwrap().contains("--form"));
}
