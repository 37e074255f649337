//! Range counts and series.

use super::proto::raingauge::v1 as proto;
use crate::status::refused;
use proto::count_result::Outcome;
use raingauge_app::counts::{check_len, granularity_unknown};
use raingauge_app::{App, Problem};
use raingauge_core::code::Refusal;
use raingauge_core::limits::{COUNTS_PER_REQUEST_MAX, KEY_LEN_MAX};
use raingauge_reader::{Answer, Range, Step};
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Longest message: many short ranges would take much more memory than their bytes.
pub const MESSAGE_LEN_MAX: usize = 2 * COUNTS_PER_REQUEST_MAX * KEY_LEN_MAX;

pub struct Service {
    pub app: Arc<App>,
}

#[tonic::async_trait]
impl proto::counts_server::Counts for Service {
    async fn batch(
        &self,
        request: Request<proto::CountsRequest>,
    ) -> Result<Response<proto::CountsResponse>, Status> {
        let proto::CountsRequest { requests, fresh } = request.into_inner();
        check_len(requests.len()).map_err(refused)?;

        let range =
            |item: &proto::CountRequest| (item.from_time, item.to_time, fresh || item.fresh);
        let ranges: Vec<Range<'_>> = requests
            .iter()
            .map(|item| {
                let (from_s, to_s, fresh) = range(item);
                Range { key: &item.key, from_s, to_s, fresh }
            })
            .collect();

        let answers = self.app.reader.counts(&ranges).await;
        let results =
            requests.into_iter().zip(answers).map(|(item, answer)| result_of(item.key, answer));
        Ok(Response::new(proto::CountsResponse { results: results.collect() }))
    }

    async fn series(
        &self,
        request: Request<proto::SeriesRequest>,
    ) -> Result<Response<proto::SeriesResponse>, Status> {
        let request = request.into_inner();
        let (step, name) = step_of(request.granularity).map_err(refused)?;
        let zone = if request.timezone.is_empty() { "UTC" } else { &request.timezone };
        let (from_s, to_s) = (request.from_time, request.to_time);
        let range = Range { key: &request.key, from_s, to_s, fresh: false };
        let series = self.app.reader.series(&range, step, zone).await.map_err(refused)?;
        let points =
            series.points.iter().map(|point| proto::Point { time: point.time, count: point.count });
        let points = points.collect();

        Ok(Response::new(proto::SeriesResponse {
            key: series.key,
            granularity: name.into(),
            points,
        }))
    }
}

fn result_of(key: String, answer: Result<Answer, Refusal>) -> proto::CountResult {
    let outcome = match answer {
        Ok(Answer { from_s, to_s, count }) => {
            Outcome::Count(proto::Count { from_time: from_s, to_time: to_s, count })
        }
        Err(Refusal { code, detail }) => {
            let code = code.as_str();
            metrics::counter!("raingauge_errors_total", "code" => code).increment(1);
            Outcome::Error(proto::Error { code: code.to_owned(), detail })
        }
    };
    proto::CountResult { key, outcome: Some(outcome) }
}

/// The requested step, and its name in the answer.
fn step_of(requested: i32) -> Result<(Step, proto::Granularity), Problem> {
    let step = match proto::Granularity::try_from(requested).map_err(|_| granularity_unknown())? {
        proto::Granularity::Quarter => (Step::Quarter, proto::Granularity::Quarter),
        proto::Granularity::Unspecified | proto::Granularity::Hour => {
            (Step::Hour, proto::Granularity::Hour)
        }
        proto::Granularity::Day => (Step::Day, proto::Granularity::Day),
        proto::Granularity::Week => (Step::Week, proto::Granularity::Week),
        proto::Granularity::Month => (Step::Month, proto::Granularity::Month),
    };
    Ok(step)
}
