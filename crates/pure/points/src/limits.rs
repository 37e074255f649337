//! Limits of points, named in one place. docs/limits.md lists each one.

/// Longest name of a programme, in bytes.
pub const PROGRAMME_LEN_MAX: usize = 40;
/// Longest name of a member, in bytes.
pub const MEMBER_LEN_MAX: usize = 128;
/// Longest key of a command, in bytes. The key of a longer identity is its SHA-256.
pub const POINTS_KEY_LEN_MAX: usize = 128;
/// Longest source of a command, in bytes.
pub const POINTS_SOURCE_LEN_MAX: usize = 128;
/// Longest reference of an award, in bytes.
pub const REFERENCE_LEN_MAX: usize = 128;
/// Longest reason of a command, in bytes.
pub const POINTS_REASON_LEN_MAX: usize = 256;
/// Longest name of a tier, table, rule, partner, budget or reward, in bytes.
pub const POINTS_NAME_LEN_MAX: usize = 64;
/// Most points of an entry, in units of the programme's smallest fraction.
pub const ENTRY_POINTS_MAX: i64 = 1_000_000_000_000_000;
/// Most decimals of points.
pub const POINTS_DECIMALS_MAX: u8 = 4;
/// Most significant digits of an amount.
pub const AMOUNT_DIGITS_MAX: u32 = 18;
/// Most significant digits of all factors of a product together.
pub const FACTOR_DIGITS_MAX: u32 = 20;
/// Most decimals of an amount or a factor, and most zeros at the end of one.
pub const NUMBER_SCALE_MAX: i32 = 30;
/// Most lots of a wallet. Two neighbours beyond that merge into the later date.
pub const WALLET_LOTS_MAX: usize = 64;
/// Most days on which points of a wallet mature.
pub const WALLET_PENDING_MAX: usize = 366;
/// Most open holds of a wallet.
pub const WALLET_HOLDS_MAX: usize = 32;
/// Most awards of one member that a refund by their reference finds.
pub const REFERENCE_AWARDS_MAX: usize = 64;
/// Most rules of a programme.
pub const PROGRAMME_RULES_MAX: usize = 1_000;
/// Most tables of a programme.
pub const PROGRAMME_TABLES_MAX: usize = 64;
/// Most rows of a table of a programme.
pub const TABLE_ROWS_MAX: usize = 10_000;
/// Most fields by which a table is looked up.
pub const TABLE_FIELDS_MAX: usize = 4;
/// Most factors of a rule or an award.
pub const FACTORS_MAX: usize = 8;
/// Most tiers of a programme.
pub const TIERS_MAX: usize = 16;
/// Most partners of a programme.
pub const PARTNERS_MAX: usize = 200;
/// Most former partners of a programme.
pub const FORMER_PARTNERS_MAX: usize = 1_000;
/// Most budgets of a programme.
pub const PROGRAMME_BUDGETS_MAX: usize = 200;
/// Most rewards of a programme.
pub const REWARDS_MAX: usize = 200;
/// Most examples of a programme.
pub const EXAMPLES_MAX: usize = 200;
/// Largest programme, in bytes of its JSON without blanks.
pub const PROGRAMME_DOCUMENT_LEN_MAX: usize = 1024 * 1024;
/// Most months after which points expire.
pub const EXPIRY_MONTHS_MAX: u16 = 120;
/// Longest grace after an expiry, in hours.
pub const GRACE_HOURS_MAX: u16 = 240;
/// Most days in which a late transaction reinstates what had expired: less than the shortest month.
pub const REINSTATE_DAYS_MAX: u16 = 27;
/// Most days for which points are pending.
pub const PENDING_DAYS_MAX: u16 = 365;
/// Longest time of a hold, in hours.
pub const HOLD_HOURS_MAX: u32 = 24 * 366;
/// Most reminders before an expiry.
pub const REMINDERS_MAX: usize = 4;
/// Most days before an expiry at which a member is reminded.
pub const REMIND_DAYS_MAX: u16 = 365;
/// Most commands that happen together or not at all.
pub const TOGETHER_MAX: usize = 16;
/// Days by which a command may lie before the time of its turn: two centuries.
pub const COMMAND_DAYS_MAX: i64 = 73_000;
/// Days by which a command may lie after the time of its turn, for clocks that differ.
pub const COMMAND_AHEAD_DAYS_MAX: i64 = 1;
