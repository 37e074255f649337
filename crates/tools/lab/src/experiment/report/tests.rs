pub mod sample_run;

use super::*;

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn a_report_has_every_file_and_needs_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let summary = write(&sample_run::small(), folder.path()).unwrap();
    assert_eq!(summary.files.iter().filter(|name| name.ends_with(".svg")).count(), 13);

    for name in &summary.files {
        assert!(fs::metadata(folder.path().join(name)).unwrap().len() > 100, "{name}");
        if name.ends_with(".svg") {
            let drawing = text(folder.path(), name);
            roxmltree::Document::parse(&drawing).unwrap_or_else(|error| panic!("{name}: {error}"));
            loads_nothing(name, &drawing);
        }
    }

    let page = text(folder.path(), PAGE);
    loads_nothing(PAGE, &page);

    for finding in &summary.findings {
        assert!(page.contains(finding.claim), "{}", finding.claim);
    }
    assert!(summary.count(Verdict::Agrees) > 5);
}

/// The only URL is the SVG namespace, from which nothing is loaded.
fn loads_nothing(name: &str, text: &str) {
    let addresses = text.replace("http://www.w3.org/2000/svg", "");
    for sign in ["://", "src=", "url(", "@import", "<script", "<link"] {
        assert!(!addresses.contains(sign), "{name} has {sign}");
    }
}

#[test]
fn a_report_is_made_again_from_its_record() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let written = write(&sample_run::small(), first.path()).unwrap();
    write(&read(first.path()).unwrap(), second.path()).unwrap();
    for name in &written.files {
        let same = fs::read(first.path().join(name)).unwrap()
            == fs::read(second.path().join(name)).unwrap();
        assert!(same, "{name}");
    }
}

#[test]
fn a_run_without_answers_has_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let summary = write(&sample_run::empty(), folder.path()).unwrap();
    assert_eq!(summary.count(Verdict::Undecided), summary.findings.len());
    assert!(read(&folder.path().join("nowhere")).is_err());
}

#[test]
fn what_a_record_says_is_not_taken_for_markup() {
    let folder = tempfile::tempdir().unwrap();
    let record = Record { title: "<b>&".to_owned(), ..sample_run::empty() };
    write(&record, folder.path()).unwrap();
    let page = text(folder.path(), PAGE);
    assert!(page.contains("&lt;b&gt;&amp;") && !page.contains("<b>&"));
}
