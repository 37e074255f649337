//! What is wrong with a cap.

use super::check_zone;
use crate::engine::Cap;
use crate::limits::DESTINATIONS_MAX;
use crate::rule::is_name;
use raingauge_core::counter::Problem;

pub fn problems(cap: &Cap) -> Vec<Problem> {
    let mut problems = Vec::new();
    if cap.destinations.is_empty() || cap.destinations.len() > DESTINATIONS_MAX {
        let detail = format!("must name 1 to {DESTINATIONS_MAX} destinations");
        problems.push(Problem::new("destinations", detail));
    }
    for (place, name) in cap.destinations.iter().enumerate() {
        if !is_name(name) || cap.destinations[..place].contains(name) {
            let detail = format!("`{name}` is no name of a destination, or occurs twice");
            problems.push(Problem::new(format!("destinations[{place}]"), detail));
        }
    }

    if cap.max < 1 {
        let detail = "must be at least 1: pause the destinations to send nothing".to_owned();
        problems.push(Problem::new("max", detail));
    }
    check_zone(Some(&cap.zone), &mut problems);
    problems
}
