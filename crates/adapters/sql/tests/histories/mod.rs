//! Random histories of a catalog, and calls that are given up.

use proptest::prelude::*;
use raingauge_core::counter::{Counter, State};
use raingauge_memory as memory;
use raingauge_policy::cache::{Choice, Policy, Strategy as Caching};
use raingauge_ports::catalog::{Catalog, Policies};
use raingauge_ports::contract::catalog::{change, counter};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// One step of a random history.
#[derive(Clone, Debug)]
pub enum Step {
    Create(Counter),
    Replace(Counter, Option<u32>),
    SetPolicy(Policy, Option<u32>),
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let templates =
        prop::sample::select(vec!["a", "b", "a:{x}", "{x}:b", "a:b", "c:{y}", "c", "{"]);
    let states =
        prop::sample::select(vec![State::Draft, State::Active, State::Paused, State::Archived]);
    let changed = (0..6_u32, templates, states).prop_map(|(id, template, state)| Counter {
        id,
        state,
        ..counter(template)
    });

    let caching = prop::sample::select(Caching::ALL.to_vec());
    let expected = || prop::option::of(0..4_u32);
    let step = prop_oneof![
        4 => changed.clone().prop_map(Step::Create),
        4 => (changed, expected()).prop_map(|(counter, expected)| Step::Replace(counter, expected)),
        1 => (caching, expected()).prop_map(|(strategy, expected)| {
            let choice = Choice { strategy, ..Choice::default() };
            Step::SetPolicy(Policy { choice, ..Policy::default() }, expected)
        }),
    ];

    prop::collection::vec(step, 1..40)
}

/// Takes these steps on an empty catalog and in memory, and compares every answer and what is there
/// in the end.
pub async fn compare(catalog: &dyn Catalog, steps: Vec<Step>) {
    let memory = memory::Catalog::default();
    for (number, step) in steps.into_iter().enumerate() {
        let expected = take(&memory, step.clone(), number).await;
        assert_eq!(take(catalog, step, number).await, expected);
    }
    assert_eq!(catalog.list().await.unwrap(), memory.list().await.unwrap());
    for versioned in memory.list().await.unwrap() {
        let id = versioned.counter.id;
        assert_eq!(catalog.versions(id).await.unwrap(), memory.versions(id).await.unwrap());
    }
    assert_eq!(catalog.cache_policy().await.unwrap(), memory.cache_policy().await.unwrap());
    assert_eq!(catalog.revision().await.unwrap(), memory.revision().await.unwrap());
}

/// The answer in words, so that those of all steps compare.
async fn take(catalog: &dyn Catalog, step: Step, number: usize) -> String {
    let change = change(&number.to_string());
    match step {
        Step::Create(counter) => format!("{:?}", catalog.create(counter, change).await),
        Step::Replace(counter, expected) => {
            format!("{:?}", catalog.replace(counter, expected, change).await)
        }
        Step::SetPolicy(policy, expected) => {
            format!("{:?}", catalog.set_cache_policy(policy, expected, change).await)
        }
    }
}

/// The answer of a future that waits at most `waits_max` times; a longer one is dropped.
pub async fn unless_it_waits_longer<T>(
    mut future: impl Future<Output = T> + Unpin,
    waits_max: u32,
) -> Option<T> {
    let mut waits = 0;
    poll_fn(|context| match Pin::new(&mut future).poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if waits == waits_max => Poll::Ready(None),
        Poll::Pending => {
            waits += 1;
            Poll::Pending
        }
    })
    .await
}
