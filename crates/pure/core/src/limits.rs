//! Every limit of the service that is not a setting, in one place.
//! A request that exceeds one is refused with an error that names it.

/// Longest key, in bytes, after escaping.
pub const KEY_LEN_MAX: usize = 512;
/// Longest template, in bytes.
pub const TEMPLATE_LEN_MAX: usize = 256;
/// Most fields in one template.
pub const TEMPLATE_FIELDS_MAX: usize = 8;
/// Longest counter name, in bytes.
pub const NAME_LEN_MAX: usize = 128;
/// Longest owner and longest description, in bytes.
pub const TEXT_LEN_MAX: usize = 2_000;
/// Deepest nesting of a filter.
pub const FILTER_DEPTH_MAX: usize = 8;
/// Most conditions in one filter, at all depths together.
pub const FILTER_CONDITIONS_MAX: usize = 64;
/// Most alternatives of one `in` condition.
pub const FILTER_IN_VALUES_MAX: usize = 1_000;
/// Longest text or number of a condition, in bytes.
pub const FILTER_CONSTANT_LEN_MAX: usize = 1_024;
/// Largest configuration of a counter, in bytes of its JSON without blanks.
pub const CONFIGURATION_LEN_MAX: usize = 64 * 1024;
/// Longest reason of a change, in bytes.
pub const REASON_LEN_MAX: usize = 2_000;
/// Most versions of one counter that are made in an hour, by one process.
pub const VERSIONS_PER_HOUR_MAX: u32 = 600;
/// Most versions that are kept of one counter.
pub const VERSIONS_MAX: u32 = 10_000;
/// Largest id of a counter: "a small positive integer".
pub const COUNTER_ID_MAX: u32 = 999_999;
/// Most counters that are not archived.
pub const COUNTERS_MAX: usize = 5_000;
/// Longest retention, in days (a hundred years).
pub const RETENTION_DAYS_MAX: u32 = 36_600;
/// Largest scale of a decimal value.
pub const VALUE_SCALE_MAX: i64 = 1_000_000_000;

/// Most steps of the rollout of a cache policy.
pub const POLICY_STEPS_MAX: usize = 32;
/// Most steps of a guarded rollout.
pub const ROLLOUT_SHARES_MAX: usize = 20;
/// Most instances that a cache policy names.
pub const POLICY_OVERRIDES_MAX: usize = 256;
/// Longest name of an instance, in bytes.
pub const INSTANCE_LEN_MAX: usize = 128;

/// Largest event, in bytes of JSON.
pub const EVENT_LEN_MAX: usize = 64 * 1024;
/// Longest `id`, `source`, `type` and `subject` of an event, in bytes.
pub const ATTRIBUTE_LEN_MAX: usize = 1_024;
/// Most events in one request.
pub const EVENTS_PER_REQUEST_MAX: usize = 50_000;
/// Deepest nesting of JSON from outside.
pub const JSON_DEPTH_MAX: usize = 64;
/// Most buckets in one `POST /v1/buckets`.
pub const BUCKETS_PER_REQUEST_MAX: usize = 10_000;
/// Longest key of a request (`Idempotency-Key`), in characters of ASCII.
pub const IDEMPOTENCY_KEY_LEN_MAX: usize = 255;
/// Requests with a key that are remembered, in each partition of the log.
pub const REQUESTS_REMEMBERED_MAX: usize = 1_000;
/// What is remembered of them, in bytes of JSON.
pub const REQUESTS_BYTES_MAX: usize = 256 * 1024;
/// How long they are remembered, in seconds.
pub const REQUESTS_REMEMBERED_S: i64 = 86_400;
/// Longest answer to a request with a key, in bytes of JSON.
pub const KEYED_ANSWER_LEN_MAX: usize = 16 * 1024;
/// Entries of the log that repeat a request and are known to do so, in each partition.
pub const REQUEST_REPETITIONS_MAX: usize = 10_000;
/// Longest body of `POST /v1/buckets`, in bytes: as many buckets with keys of the longest kind fit.
pub const BUCKETS_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest body of a counter, a draft or a cache policy, in bytes.
pub const CONFIGURATION_BODY_BYTES_MAX: usize = 256 * 1024;
/// Most arrays and objects in such a body: parsed, each takes many times its bytes.
pub const CONFIGURATION_CONTAINERS_MAX: usize = 4_000;

/// Most ranges in one `POST /v1/counts`.
pub const COUNTS_PER_REQUEST_MAX: usize = 1_000;
/// Longest body of `POST /v1/counts`, in bytes: as many ranges with keys of the longest kind fit.
pub const COUNTS_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest range, in days (a hundred years).
pub const RANGE_DAYS_MAX: i64 = 36_600;
/// Most points of one series.
pub const SERIES_POINTS_MAX: usize = 10_000;

/// Most people who may sign in to the portal, those who are disabled included.
pub const USERS_MAX: usize = 1_000;
/// Most one-time links that nobody has used.
pub const INVITATIONS_MAX: usize = 1_000;
/// Most browsers in which one person is signed in.
pub const SESSIONS_PER_USER_MAX: usize = 20;
/// Most API tokens that are in use, of those made in the portal.
pub const API_TOKENS_MAX: usize = 1_000;
/// Longest name and longest e-mail address of a person, in bytes.
pub const PERSON_LEN_MAX: usize = 128;
/// Most audit entries in one answer of the store.
pub const AUDIT_ENTRIES_MAX: usize = 1_000;

/// First second that cannot be counted any more: the year 10000.
pub const TIME_END_S: i64 = 253_402_300_800;
