//! Whole files through the public API: the events and rejections of their rows.

mod support;

use flate2::Compression;
use flate2::write::GzEncoder;
use raingauge_import::{Error, Mapping, Rows};
use std::io::Write;
use std::path::Path;
use support::{CSV_MAPPING, OwnedRow, gzip, mapping, read_all, rows_of};

fn csv(bytes: impl AsRef<[u8]>) -> Vec<OwnedRow> {
    read_all(&mut rows_of(bytes.as_ref(), &mapping(CSV_MAPPING)))
}

/// `(line, code)` of every row; an event has the code `ok`.
fn codes(rows: &[OwnedRow]) -> Vec<(u64, &str)> {
    rows.iter().map(|row| (row.line, row.code())).collect()
}

#[test]
fn a_row_becomes_an_event() {
    let rows = csv("at,zone,note,fare\n2019-01-15 03:36:12,230,\"say \"\"so\"\"\n\",12.50\n");
    assert_eq!(rows.len(), 1);
    let event = rows[0].event.as_ref().unwrap();
    assert_eq!(
        (event.kind.as_str(), event.source.as_str(), event.time_ms),
        ("t", "s", 1_547_523_372_000)
    );
    assert_eq!(event.data, r#"{"fare":12.50,"note":"say \"so\"\n","zone":230}"#);
    assert_eq!((event.subject.as_deref(), rows[0].number), (Some("230"), 1));
}

#[test]
fn lines_are_the_lines_of_the_file() {
    let time = "2019-01-15 03:36:12";
    let file = format!(
        "\u{feff}at,zone,note,fare\r\n\r\n{time},1,\"two\nlines\",1\r\n{time},2,,\n\n{time},3\nyesterday,4,,\n,5,,\n{time},6,,,\n{time},7,,"
    );
    let rows = csv(file);
    assert_eq!(
        codes(&rows),
        [
            (3, "ok"),
            (5, "ok"),
            (7, "row_cells"),
            (8, "time_invalid"),
            (9, "time_missing"),
            (10, "row_cells"),
            (11, "ok")
        ]
    );
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(rows[0].raw, format!("{time},1,\"two\nlines\",1").as_bytes());
    assert_eq!(rows[1].event.as_ref().unwrap().data, r#"{"fare":null,"note":null,"zone":2}"#);
}

#[test]
fn a_row_that_is_broken_does_not_break_the_next() {
    let good = "2019-01-15 03:36:12,1,,";
    let mut file = format!("at,zone,note,fare\n{good}\n").into_bytes();
    file.extend_from_slice(b"2019-01-15 03:36:12,\xff,,\n");
    file.extend_from_slice(format!("2019-01-15 03:36:12,1,{},\n", "x".repeat(70_000)).as_bytes());
    file.extend_from_slice(format!("{},1,,\n", "x".repeat(3_000_000)).as_bytes());
    file.extend_from_slice(format!("{good}\n2019-01-15 03:36:12,1,\"open,\n{good}\n").as_bytes());

    let expected = [
        (2, "ok"),
        (3, "row_not_utf8"),
        (4, "event_too_large"),
        (5, "row_too_long"),
        (6, "ok"),
        (7, "quote_unclosed"),
        (8, "ok"),
    ];

    assert_eq!(codes(&csv(&file)), expected);
    assert_eq!(csv(&file)[3].raw, [b'x'; 4_096]);

    // Nor does an unclosed quote consume the rest of the file.
    file.extend_from_slice(format!("{good}\n").repeat(100_000).as_bytes());
    assert_eq!(codes(&csv(&file))[..7], expected);
}

#[test]
fn the_header_must_hold_the_columns() {
    let fault = |bytes: &[u8]| {
        let result = Rows::read(
            Box::new(std::io::Cursor::new(bytes.to_vec())),
            Path::new("x.csv"),
            &mapping(CSV_MAPPING),
        );
        result.err().map(|error| error.to_string()).unwrap_or_default()
    };

    assert_eq!(
        fault(b"at,Zone, fare\n"),
        "the mapping names columns that x.csv does not have: \"zone\", \"fare\", \"note\"; it has: \"at\", \"Zone\", \" fare\""
    );
    assert!(
        fault(b"at,zone,zone,fare,note\n").contains("several columns with the same name: \"zone\"")
    );

    for (bytes, reason) in [
        (&b""[..], "empty"),
        (b"\n\n", "empty"),
        (b"at,\xff\n", "UTF-8"),
        (b"\"at,zone\n", "quote"),
    ] {
        assert!(fault(bytes).contains(reason), "{}", fault(bytes));
    }

    assert_eq!(fault(b"at,zone,fare,note"), "");
}

#[test]
fn ids_are_of_the_content() {
    let mapping = mapping(CSV_MAPPING);
    let file = format!("at,zone,note,fare\n{}", "2019-01-15 03:36:12,1,,\n".repeat(5_000));
    let ids = |bytes: &[u8]| {
        read_all(&mut rows_of(bytes, &mapping)).iter().map(OwnedRow::id).collect::<Vec<_>>()
    };
    let plain = ids(file.as_bytes());

    assert_eq!(plain.len(), 5_000);
    assert_eq!(plain, ids(&gzip(file.as_bytes())));

    let (fingerprint, number) = plain[41].split_once(':').unwrap();
    assert_eq!((fingerprint.len(), number), (16, "42"));

    // Rows appended to a long file do not change the ids; a change at its start does.
    assert_eq!(plain[..], ids(format!("{file}2019-01-15 03:36:12,1,,\n").as_bytes())[..5_000]);
    assert_ne!(plain[0], ids(file.replacen(",1,", ",2,", 1).as_bytes())[0]);
}

#[test]
fn ids_of_columns() {
    let time = "2019-01-15 03:36:12";
    let file = format!("at,zone,note,fare\n{time},a/b,c,\n{time},a,b/c,\n{time},,%,\n{time},,,\n");
    let ids = |columns: &str| {
        let mapping = mapping(&CSV_MAPPING.replace("subject", &format!("id = {columns}\nsubject")));
        read_all(&mut rows_of(file.as_bytes(), &mapping))
            .iter()
            .map(OwnedRow::id)
            .collect::<Vec<_>>()
    };
    let both = ids(r#"["zone", "note"]"#);
    assert_eq!(both[..3], ["a%2Fb/c", "a/b%2Fc", "/%25"]);
    assert!(both[3].ends_with(":4"), "{both:?}");
    let one = ids(r#"["zone"]"#);
    assert_eq!(one[..2], ["a/b", "a"]);
    assert!(one[2].ends_with(":3") && one[3].ends_with(":4"), "{one:?}");
}

#[test]
fn gzip_of_several_members_and_gzip_cut_short() {
    let (head, tail) =
        ("at,zone,note,fare\n2019-01-15 03:3", "6:12,1,,\n2019-01-15 03:36:12,2,,\n");
    let members = [gzip(head.as_bytes()), gzip(tail.as_bytes())].concat();
    assert_eq!(codes(&csv(&members)), [(2, "ok"), (3, "ok")]);

    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(format!("{head}{tail}").repeat(40_000).as_bytes()).unwrap();

    let whole = encoder.finish().unwrap();
    let mapping = mapping(CSV_MAPPING);
    let mut rows = rows_of(&whole[..whole.len() / 2], &mapping);
    let fault = loop {
        match rows.next_row() {
            Ok(row) => assert!(row.is_some(), "the end must not be taken for the file's end"),
            Err(error) => break error,
        }
    };

    assert!(matches!(fault, Error::Read { line, .. } if line > 50_000), "{fault:?}");
    assert!(rows.bytes_read() == whole.len() as u64 / 2);
}

#[test]
fn without_fields_every_column_keeps_its_name() {
    let text = CSV_MAPPING.split("[fields]").next().unwrap();
    let file = ",at,zone,a b\n1,2019-01-15 03:36:12,007,é\n";
    let rows = read_all(&mut rows_of(file.as_bytes(), &mapping(text)));
    let data = &rows[0].event.as_ref().unwrap().data;
    assert_eq!(data, r#"{"at":"2019-01-15 03:36:12","zone":"007","a b":"é"}"#);
}

#[test]
fn products_and_kinds() {
    let text = format!(
        "{CSV_MAPPING}\namount = {{ multiply = [\"fare\", \"zone\"] }}\ncode = {{ column = \"zone\", type = \"string\" }}\n"
    );
    let time = "2019-01-15 03:36:12";
    let file = format!("at,zone,note,fare\n{time},-3,,2.55\n{time},,,2.55\n{time},x,,1\n");
    let rows = read_all(&mut rows_of(file.as_bytes(), &mapping(&text)));
    let data = |at: usize| rows[at].event.as_ref().unwrap().data.as_str();

    assert_eq!(data(0), r#"{"amount":-7.65,"code":"-3","fare":2.55,"note":null,"zone":-3}"#);
    assert_eq!(data(1), r#"{"amount":null,"code":null,"fare":2.55,"note":null,"zone":null}"#);

    let refusal = rows[2].event.as_ref().unwrap_err();
    assert_eq!(refusal.code.as_str(), "field_invalid");
    assert_eq!(
        refusal.detail,
        "the column \"zone\" holds \"x\", which is not a number without an exponent"
    );
}

#[test]
fn lines_of_json() {
    let text = r#"
        format = "ndjson"
        type = "t"
        source = "s"
        id = ["_id"]
        [time]
        column = "meta.at"
        format = "epoch_seconds"
        [fields]
        drink = "drink"
        count = "n"
        hot = { column = "hot", type = "string" }
    "#;

    let file = "{\"_id\":\"1\",\"meta\":{\"at\":100},\"drink\":\"caf\\u00e9\",\"n\":1.50,\"hot\":true}\r\n\n\
        {\"_id\":null,\"meta\":{\"at\":\"101.5\"},\"drink\":[1],\"n\":\"7\"}\n\
        {\"meta\":{}}\n{\"meta\":\nnull\n[]\n{\"meta\":{\"at\":1}} x\n\
        { \"meta\" : {\"at\":102}, \"drink\":\"\" }";
    let rows = read_all(&mut rows_of(file.as_bytes(), &mapping(text)));
    let expected = [
        (1, "ok"),
        (3, "ok"),
        (4, "time_missing"),
        (5, "row_malformed"),
        (6, "row_malformed"),
        (7, "row_malformed"),
        (8, "row_malformed"),
        (9, "ok"),
    ];

    assert_eq!(codes(&rows), expected);
    let event = |at: usize| rows[at].event.as_ref().unwrap();
    assert_eq!(event(0).data, r#"{"count":1.50,"drink":"café","hot":"true"}"#);
    assert_eq!((event(0).id.as_str(), event(0).time_ms), ("1", 100_000));
    assert_eq!(
        (event(1).data.as_str(), event(1).time_ms),
        (r#"{"count":"7","drink":null,"hot":null}"#, 101_500)
    );
    assert!(event(1).id.ends_with(":2"));
    assert_eq!(event(7).data, r#"{"count":null,"drink":"","hot":null}"#);

    let whole = mapping(text.split("[fields]").next().unwrap());
    let rows = read_all(&mut rows_of(file.as_bytes(), &whole));
    assert_eq!(rows[7].event.as_ref().unwrap().data, file.lines().last().unwrap());
}

/// Every committed extract is read without a rejected row, and the `csv` crate finds as many rows.
#[test]
fn the_extracts_of_the_demo() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../demo");
    for (file, mapping) in [
        ("taxi.csv.gz", "taxi"),
        ("retail.csv.gz", "retail"),
        ("retail.csv.gz", "retail-invoices"),
        ("retail.csv.gz", "retail-distinct-lines"),
        ("quakes.csv.gz", "quakes"),
        ("chicago.csv.gz", "chicago"),
        ("coffee.jsonl.gz", "coffee"),
    ] {
        let mapping = Mapping::load(&demo.join(format!("{mapping}.mapping.toml"))).unwrap();
        let mut rows = Rows::open(&demo.join(file), &mapping).unwrap();
        let seen = read_all(&mut rows);
        assert!(
            seen.iter().all(|row| row.event.is_ok()),
            "{file}: {:?}",
            seen.iter().find(|row| row.event.is_err())
        );
        assert_eq!(rows.bytes_read(), rows.len_bytes());
        assert_eq!(seen.len(), support::count_rows(&demo.join(file)), "{file}");
    }
}
