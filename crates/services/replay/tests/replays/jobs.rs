//! Jobs wait, run, end and are forgotten.

use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::scans::Scans;
use raingauge_replay::jobs::Status;
use raingauge_replay::limits::{JOB_KEPT_MS, JOB_RESULTS_BYTES_MAX, JOBS_MAX, JOBS_OPEN_MAX};
use raingauge_replay::{Error, Job, Jobs};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::time::Instant;

fn jobs() -> (Jobs, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at_s(1_000));
    (Jobs::new(Scans::default(), clock.clone()), clock)
}

async fn until(jobs: &Jobs, id: &str, is_so: impl Fn(&Job) -> bool) -> Job {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let job = jobs.get(id).expect("a job");
        if is_so(&job) {
            return job;
        }
        assert!(Instant::now() < deadline, "{job:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_result_is_kept_for_an_hour() {
    let (jobs, clock) = jobs();
    let job = jobs.start("backtest", "ann", |_| Ok(vec![1, 2])).expect("started");
    assert_eq!(job.status, Status::Waiting);
    let job = until(&jobs, &job.id, |job| !job.status.is_open()).await;
    assert_eq!((job.status, job.progress, job.created_at), (Status::Finished, Some(1.0), 1_000));
    assert_eq!(job.result.as_ref().map(|result| result.get()), Some("[1,2]"));
    let text = serde_json::to_string(&job).expect("JSON");
    assert!(text.contains(r#""status":"finished","progress":1.0"#), "{text}");
    assert!(text.contains(r#""result":[1,2]"#), "{text}");
    assert_eq!(jobs.list().len(), 1);

    clock.set_s((clock.now_ms() + JOB_KEPT_MS) / 1_000);
    assert!(matches!(jobs.get(&job.id), Err(Error::UnknownJob(_))));
    assert!(jobs.list().is_empty());
}

#[tokio::test]
async fn a_job_that_fails_says_why() {
    let (jobs, _clock) = jobs();
    let failing = |_: &_| Err::<(), _>(Error::TooLarge("too large".to_owned()));
    let job = jobs.start("compare", "ann", failing).expect("started");
    let job = until(&jobs, &job.id, |job| !job.status.is_open()).await;
    assert_eq!((job.status, job.error.as_deref()), (Status::Failed, Some("too large")));

    let job = jobs.start("compare", "ann", |_| -> Result<(), Error> { panic!("broken") });
    let job = until(&jobs, &job.expect("started").id, |job| !job.status.is_open()).await;
    assert_eq!(job.status, Status::Failed);
}

#[tokio::test]
async fn a_job_is_cancelled_while_it_waits_and_while_it_runs() {
    let (jobs, _clock) = jobs();
    let (go, wait) = mpsc::channel::<()>();
    let first = jobs.start("a", "ann", move |_| Ok(wait.recv().is_ok())).expect("started");
    until(&jobs, &first.id, |job| job.status == Status::Running).await;

    // A caller runs one at a time.
    let second = jobs.start("b", "ann", |_| Ok(())).expect("started");
    assert_eq!(jobs.get(&second.id).expect("a job").status, Status::Waiting);
    assert_eq!(jobs.cancel(&second.id).expect("cancelled").status, Status::Cancelled);
    assert_eq!(jobs.cancel(&first.id).expect("cancelled").status, Status::Cancelled);
    go.send(()).expect("it still runs");

    let first = until(&jobs, &first.id, |job| job.ended_at.is_some()).await;
    assert!(first.status == Status::Cancelled && first.result.is_none());
    let second = until(&jobs, &second.id, |job| job.ended_at.is_some()).await;
    assert_eq!(second.status, Status::Cancelled);
    assert!(matches!(jobs.cancel("job_0"), Err(Error::UnknownJob(_))));
}

#[tokio::test]
async fn jobs_and_their_results_are_bounded() {
    let (jobs, _clock) = jobs();
    let (go, wait) = mpsc::channel::<()>();
    let blocked = jobs.start("a", "ann", move |_| Ok(wait.recv().is_ok())).expect("started");
    let waiting: Vec<Job> =
        (1..JOBS_OPEN_MAX).map(|_| jobs.start("b", "ann", |_| Ok(())).expect("started")).collect();
    assert!(matches!(jobs.start("c", "bob", |_| Ok(())), Err(Error::TooManyJobs)));
    go.send(()).expect("it still runs");
    for job in waiting.iter().chain([&blocked]) {
        until(&jobs, &job.id, |job| job.status == Status::Finished).await;
    }

    for _ in 0..JOBS_MAX {
        let job = jobs.start("d", "ann", |_| Ok(())).expect("started");
        until(&jobs, &job.id, |job| !job.status.is_open()).await;
    }
    assert_eq!(jobs.list().len(), JOBS_MAX);
    assert!(matches!(jobs.get(&blocked.id), Err(Error::UnknownJob(_))));

    // Of large results, the older ones make room.
    let large = || Ok("x".repeat(JOB_RESULTS_BYTES_MAX / 2));
    let old = jobs.start("e", "ann", move |_| large()).expect("started");
    until(&jobs, &old.id, |job| job.status == Status::Finished).await;
    let new = jobs.start("f", "ann", move |_| large()).expect("started");
    let deadline = Instant::now() + Duration::from_secs(60);
    while jobs.get(&old.id).is_ok() {
        assert!(Instant::now() < deadline, "the old result is still kept");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(jobs.get(&new.id).expect("a job").status, Status::Finished);

    let huge = jobs.start("g", "ann", |_| Ok("x".repeat(JOB_RESULTS_BYTES_MAX))).expect("started");
    let huge = until(&jobs, &huge.id, |job| !job.status.is_open()).await;
    assert_eq!(huge.status, Status::Failed);
}
