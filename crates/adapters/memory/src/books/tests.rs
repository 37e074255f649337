use super::*;
use raingauge_ports::contract::books::suite;

#[test]
fn books_of_any_number_keep_the_contract() {
    suite(|| Books::new(1));
    suite(|| Books::new(16));
}
