//! Subjects.

use super::{operation, path_name};
use raingauge_core::code::Code;
use raingauge_http::{Operation, Shared};
use serde_json::json;
use utoipa::ToSchema;

pub fn erase() -> Operation {
    operation("eraseSubject", "Erase what campaigns remember of a subject")
        .text(
            "Counts, usage, exposures, what waits for the subject, its decisions and its \
             deliveries, in all campaigns. Ids of granted actions stay, so that no event acts \
             twice, and the log keeps its events for as long as its retention says.",
        )
        .parameter(path_name("subject", "u-7"))
        .takes(&[Shared::Reason])
        .answers::<ErasedSubject>(200, "It is erased.", json!({ "subject": "u-7", "erased": true }))
        .refusal(
            &[Code::RequestMalformed, Code::ReasonTooLong],
            "No subject has such a name, or the reason is too long.",
        )
        .refusal(&[Code::Unavailable], "It has not taken effect yet, and will.")
}

#[derive(ToSchema)]
pub struct ErasedSubject {
    pub subject: String,
    pub erased: bool,
}
