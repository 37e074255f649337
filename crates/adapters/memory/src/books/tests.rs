use super::*;
use raingauge_ports::contract::books::{scripts, suite};

#[test]
fn books_of_any_number_keep_the_contract() {
    suite(|| Books::new(1));
    suite(|| Books::new(16));
}

#[test]
fn books_answer_as_the_scripts_say() {
    scripts(|| Books::new(1));
    scripts(|| Books::new(16));
}
