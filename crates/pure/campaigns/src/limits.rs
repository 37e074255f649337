//! Limits of campaigns, named in one place. docs/limits.md lists each one.

/// Most leaves of the rule of a campaign, and of the condition of a step.
pub const RULE_LEAVES_MAX: usize = 64;
/// Deepest nesting of a rule.
pub const RULE_DEPTH_MAX: usize = 8;

/// Newest times that a tally or limit over the last hours or days keeps of a subject.
pub const KEPT_TIMES_MAX: usize = 257;
/// Longest delay of an action, in days.
pub const DELAY_DAYS_MAX: u16 = 90;
/// Most values of a schedule.
pub const SCHEDULE_ENTRIES_MAX: usize = 32;
/// Most variants of an experiment.
pub const VARIANTS_MAX: usize = 16;
/// Longest key of an experiment and seed of a holdout, in bytes.
pub const EXPERIMENT_KEY_LEN_MAX: usize = 128;
/// Longest unit of a budget, in bytes.
pub const BUDGET_UNIT_LEN_MAX: usize = 64;
/// Limits from this number on are not tracked: no row is written for each subject.
pub const UNTRACKED_LIMIT_MIN: i64 = 100_000;
/// Longest text in a condition, in bytes.
pub const RULE_CONSTANT_LEN_MAX: usize = 1_024;
/// Longest name of a campaign, or of a step, count, action, budget or lookup in it, in bytes.
pub const CAMPAIGN_NAME_LEN_MAX: usize = 128;
/// Largest count of a `reaches` or an `every`.
pub const EDGE_COUNT_MAX: i64 = 1_000_000_000;
/// Most conjunctions of one step in the index. A wider alternative is left to the evaluation.
pub const INDEX_ROWS_MAX: usize = 16;
/// Most constants of one field in a conjunction of the index. More are left to the evaluation.
pub const INDEX_CONSTANTS_MAX: usize = 128;
/// Shortest and longest secret of a destination, in bytes.
pub const SECRET_LEN_MIN: usize = 24;
pub const SECRET_LEN_MAX: usize = 64;
/// Longest time between the moment in the headers of a webhook and the receiver's clock, in
/// seconds, for the receiver to accept it. Standard Webhooks leaves it to the receiver, and its
/// libraries have five minutes.
pub const WEBHOOK_AGE_S_MAX: u64 = 300;
/// Largest campaign, in bytes of its JSON without blanks.
pub const CAMPAIGN_LEN_MAX: usize = 256 * 1024;
/// Most types of events that a campaign, a count or a cancellation names.
pub const EVENT_TYPES_MAX: usize = 16;
/// Most counts of a campaign.
pub const COUNTS_MAX: usize = 8;
/// Most steps of a campaign.
pub const STEPS_MAX: usize = 16;
/// Most actions of a step.
pub const ACTIONS_MAX: usize = 8;
/// Most limits of a campaign.
pub const CAMPAIGN_LIMITS_MAX: usize = 16;
/// Most budgets of a campaign.
pub const BUDGETS_MAX: usize = 8;
/// Longest name of a subject, in bytes.
pub const SUBJECT_LEN_MAX: usize = 256;
/// Most campaigns in a chain in which each emits the event that triggers the next.
pub const CHAIN_DEPTH_MAX: u32 = 3;
/// Most actions that one event is granted.
pub const ACTIONS_PER_EVENT_MAX: usize = 64;
/// Most actions of one subject and one step that an event may cancel.
pub const WAITING_ACTIONS_MAX: usize = 64;
/// Most templates of a campaign.
pub const TEMPLATES_MAX: usize = 32;
/// Most locales of a template.
pub const LOCALES_MAX: usize = 64;
/// Longest text of a template, in bytes.
pub const MESSAGE_TEMPLATE_LEN_MAX: usize = 16 * 1024;
/// Most statements of a template, such as `if`, `elif` and `endif`.
pub const TEMPLATE_STATEMENTS_MAX: usize = 200;
/// Most names, signs and constants of one tag of a template.
pub const TAG_TOKENS_MAX: usize = 200;
/// Longest text of a rendered message, in bytes.
pub const MESSAGE_LEN_MAX: usize = 32 * 1024;
/// Largest document, in bytes of its JSON without blanks.
pub const DOCUMENT_LEN_MAX: usize = 256 * 1024;
/// Most campaigns that are not archived.
pub const CAMPAIGNS_MAX: usize = 10_000;
/// Most campaigns in all.
pub const STORED_CAMPAIGNS_MAX: usize = 20_000;
/// Most destinations.
pub const DESTINATIONS_MAX: usize = 200;
/// Most lookups.
pub const LOOKUPS_MAX: usize = 200;
/// Most uploaded tables and segments.
pub const TABLES_MAX: usize = 200;
/// Most shared budgets, most caps, and most holdouts.
pub const SHARED_DOCUMENTS_MAX: usize = 1_000;
/// Longest address of a destination or lookup, in bytes.
pub const URL_LEN_MAX: usize = 2_048;
/// Longest name of the variable or file of a secret, in bytes.
pub const SECRET_NAME_LEN_MAX: usize = 256;
/// Shortest timeout of a destination or lookup, in milliseconds.
pub const TIMEOUT_MS_MIN: u64 = 10;
/// Longest timeout of a destination, in milliseconds.
pub const DESTINATION_TIMEOUT_MS_MAX: u64 = 60_000;
/// Longest timeout of a lookup, in milliseconds.
pub const LOOKUP_TIMEOUT_MS_MAX: u64 = 30_000;
/// Longest time for which the answer of a lookup is kept, in seconds.
pub const LOOKUP_TTL_S_MAX: u32 = 86_400;
/// Longest statement of a lookup, in bytes.
pub const LOOKUP_SQL_LEN_MAX: usize = 4_096;
/// Largest weight of a lookup or table.
pub const LOOKUP_WEIGHT_MAX: u32 = 1_000_000;
/// Most requests to a destination or lookup at a time.
pub const CONCURRENCY_MAX: u16 = 256;
/// Most columns of an uploaded table.
pub const TABLE_COLUMNS_MAX: usize = 32;
/// Longest text in a cell of an uploaded table, in bytes.
pub const TABLE_TEXT_LEN_MAX: usize = 1_024;
/// Longest row of an upload, in bytes.
pub const UPLOAD_ROW_LEN_MAX: usize = 64 * 1024;
/// Most rows that are changed at once in an uploaded table.
pub const TABLE_CHANGES_MAX: usize = 10_000;
