//! A sorted set of up to a million members: what ranks, inserts and ranges cost as it grows.
//!
//! Ranks are O(log n): from 1,000 to 1,000,000 members their time may grow by a small factor, where
//! a walk would take a thousand times as long.

use std::hint::black_box;
use std::ops::Bound;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use raingauge_values::sorted::{ScoreRange, Sorted};
use raingauge_values::{Blob, Collection};

const SIZES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// A sequence without order that repeats only after 2^64 numbers.
fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);

    mixed ^ mixed >> 29
}

fn name(number: u64) -> Blob {
    Blob::from_slice(format!("player:{number}").as_bytes())
}

fn score(number: u64) -> f64 {
    (mix(number) % 1_000_000) as f64
}

fn board(size: u64) -> Sorted {
    Sorted::from_scores((0..size).map(|number| (name(number), score(number))))
}

fn ranks_and_changes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sorted");

    for size in SIZES {
        let mut board = board(size);
        let names: Vec<Blob> = (0..1 << 14).map(|number| name(mix(number) % size)).collect();
        let mut next = 0;
        let mut any = || {
            next = (next + 1) % names.len();
            &names[next]
        };

        group.bench_function(BenchmarkId::new("rank", size), |bencher| {
            bencher.iter(|| black_box(board.rank(any())));
        });
        group.bench_function(BenchmarkId::new("top ten", size), |bencher| {
            bencher.iter(|| {
                board
                    .range_back(size as usize - 10..size as usize)
                    .map(|(_, score)| score)
                    .sum::<f64>()
            });
        });
        group.bench_function(BenchmarkId::new("count by score", size), |bencher| {
            let range =
                ScoreRange { min: Bound::Included(250_000.0), max: Bound::Excluded(750_000.0) };
            bencher.iter(|| black_box(board.ranks_by_score(range)).len());
        });

        let mut turn = 0u64;
        group.bench_function(BenchmarkId::new("change a score", size), |bencher| {
            bencher.iter(|| {
                turn += 1;
                board.insert(any(), score(turn))
            });
        });
        group.bench_function(BenchmarkId::new("add one, drop the lowest", size), |bencher| {
            bencher.iter(|| {
                turn += 1;
                board.insert(&name(size + turn), score(turn));
                board.remove_range(0..1)
            });
        });
    }
    group.finish();
}

fn whole_sets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sorted of a million");
    group.sample_size(10);
    let members: Vec<(Blob, f64)> =
        (0..1_000_000).map(|number| (name(number), score(number))).collect();
    let board = Sorted::from_scores(members.iter().cloned());
    println!("a million members weigh {} bytes each, estimated", board.weight() / board.len());

    group.bench_function("inserts in no order", |bencher| {
        bencher.iter_batched(
            Sorted::new,
            |mut sorted| {
                for (name, score) in &members {
                    sorted.insert(name, *score);
                }
                sorted
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("load", |bencher| {
        bencher.iter_batched(|| members.clone(), Sorted::from_scores, BatchSize::PerIteration);
    });
    group.bench_function("walk in order", |bencher| {
        bencher.iter(|| board.iter().map(|(name, _)| name.len()).sum::<usize>());
    });
    group.finish();
}

criterion_group!(benches, ranks_and_changes, whole_sets);
criterion_main!(benches);
