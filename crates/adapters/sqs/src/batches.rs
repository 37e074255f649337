//! Batches within the limits of SQS.

/// Most entries of one call.
pub const BATCH_LEN_MAX: usize = 10;

/// Cuts items into batches of at most [`BATCH_LEN_MAX`] items, and `bytes_max` bytes by the size
/// of each item. An item that is too large alone has a batch of its own.
pub fn batches<T>(items: Vec<T>, bytes_max: usize, bytes_of: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut batches: Vec<Vec<T>> = Vec::new();
    let mut bytes = 0;
    for item in items {
        let size = bytes_of(&item);
        match batches.last_mut() {
            Some(last) if last.len() < BATCH_LEN_MAX && bytes + size <= bytes_max => {
                last.push(item);
                bytes += size;
            }
            _ => {
                batches.push(vec![item]);
                bytes = size;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_few_items_and_few_bytes() {
        let lens = |sizes: Vec<usize>| {
            let cut = batches(sizes, 100, |size| *size);
            cut.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lens(vec![1; 25]), [10, 10, 5]);
        assert_eq!(lens(vec![40, 60, 1, 200, 1]), [2, 1, 1, 1]);
        assert_eq!(lens(vec![]), [0; 0]);
    }
}
