//! What an award costs: pricing an event, deciding on a loaded wallet, encoding the entry.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use raingauge_core::event::Event;
use raingauge_points::{
    BookHead, Command, Desk, Entry, Programme, ProgrammeDocument, Programmes, Snapshot, Wallet,
};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;

/// 2026-01-15T00:00:00Z.
const NOW_MS: i64 = 1_768_435_200_000;
const COMMANDS: usize = 1_000;

fn programmes() -> Programmes {
    let json = json!({
        "programme": "grab-sg",
        "timezone": "Asia/Singapore",
        "expiry": {"kind": "activity", "months": 6},
        "tables": {
            "vertical": {"by": ["data.country", "data.vertical"], "rows": {"SG.food": 2, "SG.*": 1}},
            "eppf": {"by": ["data.currency"], "rows": {"SGD": 1}},
            "payment": {"by": ["data.payment"], "default": 1, "rows": {"grabpay": 2}},
            "tier": {"by": ["tier"], "rows": {"member": 1, "gold": 2.25}},
        },
        "tiers": {"levels": [{"name": "member", "from": 0}, {"name": "gold", "from": 1_000_000}]},
        "rules": [{
            "id": 1, "name": "food", "eventType": "order.completed", "member": "data.member",
            "amount": "data.amount", "factors": ["vertical", "eppf", "payment", "tier"],
            "reference": "data.order",
        }],
    });
    let document = ProgrammeDocument::parse(&json).expect("the programme is sound");
    let mut programmes = Programmes::new();
    programmes.insert(Arc::new(Programme::compile(&document, 1).expect("it was checked")));
    programmes
}

/// Orders of as many members.
fn orders() -> Vec<String> {
    let order = |number: usize| {
        json!({"member": format!("member-{number}"), "country": "SG", "vertical": "food",
            "currency": "SGD", "payment": "grabpay", "amount": 15.5, "order": format!("o-{number}")})
        .to_string()
    };
    (0..COMMANDS).map(order).collect()
}

fn event(data: &str, number: usize) -> Event<'_> {
    Event { id: number.to_string().into(), ..Event::of_data("order.completed", NOW_MS, data) }
}

fn commands(programme: &Programme, from: usize) -> Vec<Command> {
    let orders = orders();
    let priced = orders.iter().enumerate().map(|(number, data)| {
        let event = event(data, from + number);
        let mut found = programme.price_event(&event);
        found.pop().expect("the rule matches").expect("it is priced")
    });
    priced.collect()
}

/// Wallets that have earned before.
fn loaded(programmes: &Programmes, first: &[Command]) -> Snapshot {
    let heads = vec![BookHead { book: 0, sequence: 0, recorded_ms: 0 }];
    let state = Snapshot { heads, books: 1, ..Snapshot::default() };
    let mut desk = Desk::new(programmes, state, NOW_MS);
    for command in first {
        desk.execute(command);
    }
    let mut loaded = desk.state().clone();
    loaded.keys.clear();
    loaded.references.clear();
    loaded
}

fn decide(criterion: &mut Criterion) {
    let programmes = programmes();
    let programme = programmes.get("grab-sg").expect("it is in force").clone();
    let first = commands(&programme, 0);
    let second = commands(&programme, COMMANDS);
    let loaded = loaded(&programmes, &first);

    let mut group = criterion.benchmark_group("points");
    group.throughput(criterion::Throughput::Elements(COMMANDS as u64));
    let orders = orders();
    group.bench_function("price", |bencher| {
        bencher.iter(|| {
            for (number, data) in orders.iter().enumerate() {
                black_box(programme.price_event(&event(data, number)));
            }
        })
    });

    group.bench_function("award", |bencher| {
        let desk = || Desk::new(&programmes, loaded.clone(), NOW_MS);
        let award = |mut desk: Desk<'_>| {
            for command in &second {
                black_box(desk.execute(command));
            }
            desk.finish()
        };
        bencher.iter_batched(desk, award, BatchSize::LargeInput)
    });

    let mut desk = Desk::new(&programmes, loaded.clone(), NOW_MS);
    for command in &second {
        desk.execute(command);
    }
    let turn = desk.finish();
    group.bench_function("encode", |bencher| {
        let mut bytes = Vec::new();
        bencher.iter(|| {
            for (entry, (_, wallet)) in turn.entries.iter().zip(&turn.wallets) {
                bytes.clear();
                entry.encode(&mut bytes);
                wallet.encode(&mut bytes);
                black_box(&bytes);
            }
        })
    });

    let encoded = turn.entries.iter().zip(&turn.wallets).map(|(entry, (_, wallet))| {
        let mut bytes = (Vec::new(), Vec::new());
        entry.encode(&mut bytes.0);
        wallet.encode(&mut bytes.1);
        bytes
    });
    let encoded: Vec<(Vec<u8>, Vec<u8>)> = encoded.collect();
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            for (entry, wallet) in &encoded {
                black_box(Entry::decode(entry).expect("it was encoded"));
                black_box(Wallet::decode(wallet).expect("it was encoded"));
            }
        })
    });
    group.finish();
}

criterion_group!(benches, decide);
criterion_main!(benches);
