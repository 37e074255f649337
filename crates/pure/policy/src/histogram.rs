//! Quantiles of a histogram, as metrics have it.

/// The quantile of cumulative buckets, `(upper bound, number up to it)`, as `histogram_quantile` of
/// Prometheus computes it: linear within a bucket; beyond the last finite bound, that bound. `None`
/// for an empty histogram.
pub fn quantile(buckets: &[(f64, f64)], quantile: f64) -> Option<f64> {
    let total = buckets.last()?.1;
    if total <= 0.0 {
        return None;
    }

    let rank = quantile.clamp(0.0, 1.0) * total;
    let place = buckets.iter().position(|(_, sum)| *sum >= rank).unwrap_or(buckets.len() - 1);
    let (below, counted) = match place {
        0 => (0.0, 0.0),
        _ => buckets[place - 1],
    };
    let (bound, sum) = buckets[place];
    if !bound.is_finite() {
        return Some(below);
    }

    let within = if sum > counted { (rank - counted) / (sum - counted) } else { 1.0 };
    Some(below + (bound - below) * within)
}
