//! The checks of `truth.rs` on the engines of a cluster.

use super::place::Place;
use super::roles::settle;
use crate::truth::{ask_everything, create_counters, demo, list, number, text, truth};

#[test]
fn every_question_about_the_extracts_is_answered_as_another_tool_does() {
    let Some(place) = Place::new(2) else { return };
    let server = place.start("writer,portal");
    let truth = truth();
    let reader = place.start("reader");
    let url = format!("http://{}", server.address);

    create_counters(&place.home, &truth, &["--server", &url]);
    settle(&server, &server, &reader, place.partitions);

    for import in list(&truth, "imports") {
        let file = demo(text(import, "file"));
        let mapping = demo(text(import, "mapping"));
        let imported = place
            .home
            .run(&["import", &file, "--mapping", &mapping, "--json", "--server", &url])
            .json();
        assert_eq!(
            (&imported["rows"], &imported["rejected"]),
            (&import["rows"], &0.into()),
            "{mapping}: {imported}"
        );

        // Duplicates are detected where the log is read, not where it is written.
        assert_eq!(
            number(&imported, "accepted") + number(&imported, "duplicates"),
            number(import, "rows")
        );
    }

    ask_everything(&reader, &truth);
}
