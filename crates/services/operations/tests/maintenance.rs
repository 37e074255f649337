//! Runs over an engine in memory, by a clock that jumps from one event to the next: nothing here
//! waits for real time.

#[path = "maintenance/engine.rs"]
mod engine;

use engine::{Engine, at, maintenance, node, options};
use raingauge_operations::maintenance::{
    Error, NodeState, OnFailure, Options, Outcome, Schedules, Trigger,
};
use std::time::Duration;
use tokio::time::{advance, sleep};

const HOUR: Duration = Duration::from_secs(3_600);

/// Three racks whose nodes come in any order.
fn nodes() -> Vec<raingauge_ports::maintenance::Node> {
    [("b", "4"), ("a", "3"), ("c", "2"), ("a", "1"), ("b", "5")]
        .map(|(rack, name)| node(rack, name))
        .to_vec()
}

#[tokio::test(start_paused = true)]
async fn racks_come_one_after_the_other_and_nodes_never_together() {
    let engine = Engine::new(nodes());
    let maintenance = maintenance(&engine, options("0 3 * * *"));
    sleep(at("03:00:00") + Duration::from_secs(1)).await;

    let running = maintenance.status().running.expect("it is due");
    assert_eq!(running.trigger, Trigger::Schedule("0 3 * * *".to_owned()));
    assert_eq!(running.nodes[0].state, NodeState::Running);
    assert_eq!(running.nodes[1].state, NodeState::Waiting);
    maintenance.idle().await;
    assert_eq!(
        engine.log(),
        ["compact a 1", "compact a 3", "compact b 4", "compact b 5", "compact c 2"]
    );
    assert_eq!(engine.at_once_max(), 1);

    let run = &maintenance.status().last[0];
    assert_eq!((run.result, &run.detail), (Some(Outcome::Finished), &None));

    // Five nodes of ten minutes, and four rests of one minute.
    assert_eq!(run.ended_at.unwrap() - run.started_at, 54 * 60);
    assert!(
        run.nodes
            .iter()
            .all(|node| node.state == NodeState::Compacted && node.seconds == Some(600.0))
    );
    assert_eq!(engine.lease(), ["hold", "release"].map(str::to_owned), "renewals are left out");
}

#[tokio::test(start_paused = true)]
async fn what_is_due_while_a_run_is_under_way_is_passed_over() {
    let engine = Engine::new(nodes());

    // A run takes 54 minutes: the one of half past is passed over, that of the next hour is not.
    let maintenance = maintenance(&engine, options("0 3 * * *; 30 3 * * *; 0 4 * * *"));
    sleep(at("03:40:00")).await;
    assert_eq!(maintenance.compact("anna"), Err(Error::Running));
    sleep(2 * HOUR).await;

    let last = maintenance.status().last;
    let triggers: Vec<_> = last.iter().map(|run| run.trigger.clone()).collect();
    assert_eq!(triggers, ["0 4 * * *", "0 3 * * *"].map(|text| Trigger::Schedule(text.to_owned())));
    assert_eq!(engine.at_once_max(), 1);

    let next: Vec<i64> =
        maintenance.status().schedules.iter().map(|upcoming| upcoming.next).collect();
    let tomorrow = engine::MIDNIGHT_S + 86_400;
    assert_eq!(next, [3 * 3_600, 3 * 3_600 + 1_800, 4 * 3_600].map(|second| tomorrow + second));
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_with_its_window() {
    let engine = Engine::new(nodes());
    let options = Options { max_duration: Duration::from_secs(25 * 60), ..options("0 3 * * *") };
    let maintenance = maintenance(&engine, options);
    sleep(at("03:00:00") + HOUR).await;
    let run = &maintenance.status().last[0];
    assert_eq!(run.result, Some(Outcome::WindowOver));
    assert_eq!(run.ended_at.unwrap() - run.started_at, 25 * 60);
    // Two nodes, two rests, and three minutes of the third node, which is asked to stop.
    assert_eq!(engine.log(), ["compact a 1", "compact a 3", "compact b 4", "stop b 4"]);
    let states: Vec<_> = run.nodes.iter().map(|node| node.state).collect();
    use NodeState::{Compacted, Stopped, Waiting};
    assert_eq!(states, [Compacted, Compacted, Stopped, Waiting, Waiting]);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_stopped_in_the_middle_of_a_node_and_in_a_rest() {
    let engine = Engine::new(nodes());
    let maintenance = maintenance(&engine, options(""));
    assert_eq!(maintenance.stop(), Err(Error::Idle));
    maintenance.compact("ann").unwrap();
    sleep(Duration::from_secs(5 * 60)).await;
    maintenance.stop().unwrap();
    maintenance.idle().await;

    let run = maintenance.status().last[0].clone();
    assert_eq!(
        (run.trigger, run.result),
        (Trigger::Request("ann".to_owned()), Some(Outcome::Stopped))
    );
    assert_eq!(run.nodes[0].state, NodeState::Stopped);
    assert_eq!(engine.log(), ["compact a 1", "stop a 1"]);

    maintenance.compact("ben").unwrap();
    sleep(Duration::from_secs(10 * 60 + 30)).await;
    assert_eq!(maintenance.status().running.unwrap().nodes[0].state, NodeState::Compacted);
    maintenance.stop().unwrap();
    maintenance.idle().await;

    let run = maintenance.status().last[0].clone();
    assert_eq!(
        (run.result, run.ended_at.unwrap() - run.started_at),
        (Some(Outcome::Stopped), 10 * 60 + 30)
    );
    assert_eq!(engine.log()[2..], ["compact a 1"]);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_cannot_stop_is_waited_for() {
    let engine = Engine::new(vec![node("local", "1"), node("local", "2")]).that_cannot_stop();
    let maintenance = maintenance(&engine, options(""));
    maintenance.compact("ann").unwrap();
    sleep(Duration::from_secs(60)).await;
    maintenance.stop().unwrap();
    maintenance.idle().await;

    let run = &maintenance.status().last[0];
    assert_eq!(
        (run.result, run.ended_at.unwrap() - run.started_at),
        (Some(Outcome::Stopped), 10 * 60)
    );
    assert_eq!(run.nodes[0].state, NodeState::Compacted);
    assert_eq!(run.nodes[1].state, NodeState::Waiting);
    assert_eq!(engine.log(), ["compact local 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_fails_is_reported_and_the_run_goes_on_or_ends() {
    for (on_failure, compacted) in [(OnFailure::Continue, 5), (OnFailure::Stop, 2)] {
        let engine = Engine::new(nodes()).broken("3");
        let maintenance = maintenance(&engine, Options { on_failure, ..options("") });
        maintenance.compact("ann").unwrap();
        maintenance.idle().await;
        let run = &maintenance.status().last[0];
        assert_eq!(run.result, Some(Outcome::Failed));
        assert_eq!(run.detail.as_deref(), Some("3: the disk is full"));
        assert_eq!(run.nodes[1].state, NodeState::Failed);
        assert_eq!(run.nodes[1].error.as_deref(), Some("the disk is full"));
        assert_eq!(engine.log().len(), compacted);
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_cannot_be_listed_and_engines_that_panic_end_the_run_alone() {
    let engine = Engine::new(nodes()).broken("list");
    let listless = maintenance(&engine, options(""));
    listless.compact("ann").unwrap();
    listless.idle().await;

    let detail = listless.status().last[0].detail.clone().unwrap();
    assert!(detail.starts_with("the nodes cannot be listed"), "{detail}");

    let engine = Engine::new(vec![node("a", "panic")]).broken("panic");
    let panicking = maintenance(&engine, options(""));

    for _ in 0..2 {
        panicking.compact("ann").unwrap();
        panicking.idle().await;
        assert_eq!(panicking.status().last[0].result, Some(Outcome::Failed));
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported_while_a_node_is_at_work() {
    let engine = Engine::new(nodes());
    let maintenance = maintenance(&engine, options(""));
    maintenance.compact("ann").unwrap();
    sleep(Duration::from_secs(5 * 60 + 1)).await;
    let progress = maintenance.status().running.unwrap().nodes[0].progress.clone().unwrap();
    assert_eq!((progress.done, progress.total, progress.unit.as_str()), (300, 600, "bytes"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_another_process_keeps_a_run_from_beginning() {
    let engine = Engine::new(nodes());
    engine.give_lease_away();
    let maintenance = maintenance(&engine, options("0 3 * * *"));
    sleep(at("03:00:00") + Duration::from_secs(1)).await;
    assert_eq!(maintenance.status().last[0].result, Some(Outcome::Elsewhere));
    assert_eq!(engine.log(), [""; 0]);
    assert_eq!(engine.lease(), ["hold"], "what is not ours is not released");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_ends_the_run() {
    let engine = Engine::new(nodes());
    let maintenance = maintenance(&engine, options(""));
    maintenance.compact("ann").unwrap();
    sleep(Duration::from_secs(60)).await;
    engine.give_lease_away();
    maintenance.idle().await;
    let run = &maintenance.status().last[0];
    assert_eq!(run.result, Some(Outcome::LeaseLost));
    assert_eq!(engine.log(), ["compact a 1", "stop a 1"]);
}

/// The store of the lease is out of reach: the run ends before the lease, which another process
/// could take then.
#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_ends_the_run_in_time() {
    let engine = Engine::new(nodes());
    let maintenance = maintenance(&engine, options(""));
    maintenance.compact("ann").unwrap();
    sleep(Duration::from_secs(31)).await;
    engine.break_lease();
    maintenance.idle().await;
    let run = &maintenance.status().last[0];
    assert_eq!(run.result, Some(Outcome::LeaseLost));
    // Renewed last after 30 s, and it lasts 60 s.
    assert!(run.ended_at.unwrap() - run.started_at < 90, "{run:?}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_leaps_does_not_begin_a_run_at_a_wrong_hour() {
    let engine = Engine::new(nodes());
    let maintenance = maintenance(&engine, options("0 3 * * *"));

    // The machine sleeps from one until noon; nothing else runs in that time.
    advance(at("01:00:00")).await;
    engine.leap(11 * 3_600);
    sleep(HOUR).await;
    assert_eq!((maintenance.status().running, maintenance.status().last.len()), (None, 0));
    sleep(at("14:30:00")).await;
    assert!(maintenance.status().running.is_some(), "the next day is kept");

    // A clock that is put back does not repeat what was done.
    maintenance.idle().await;
    engine.leap(-3_600);
    sleep(2 * HOUR).await;
    assert_eq!(maintenance.status().last.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_what_is_under_way() {
    let engine = Engine::new(nodes());
    let maintenance = maintenance(&engine, options("* * * * *"));
    sleep(Duration::from_secs(120)).await;
    maintenance.close().await;
    assert_eq!(maintenance.status().last[0].result, Some(Outcome::Stopped));
    assert_eq!(maintenance.compact("ann"), Err(Error::Closing));
    sleep(HOUR).await;
    assert_eq!(engine.log(), ["compact a 1", "stop a 1"]);
}

#[test]
fn schedules_are_distinguished() {
    let parse = |text| Schedules::parse(text, "UTC").unwrap();
    assert_ne!(parse("0 3 * * *"), parse("0 4 * * *"));
    assert_eq!(parse(" 0  3 * * * ;"), parse("0 3 * * *"));
}
