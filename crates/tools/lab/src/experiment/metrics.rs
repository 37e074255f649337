//! Parsing of `/metrics`.

/// Returns the sum of all series of a metric with a given label; 0 if there are none.
pub fn sum(page: &str, name: &str, label: &str) -> f64 {
    page.lines()
        .filter_map(|line| line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{'])))
        .filter(|rest| rest.contains(label))
        .filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_the_sum_of_its_series() {
        let page = "# HELP hits what\nhits{strategy=\"live\"} 3\nhits{strategy=\"result\"} 4\nhits_all 9\nversion 2\n";
        assert_eq!(sum(page, "hits", ""), 7.0);
        assert_eq!(sum(page, "hits", "strategy=\"live\""), 3.0);
        assert_eq!((sum(page, "version", ""), sum(page, "none", "")), (2.0, 0.0));
    }
}
