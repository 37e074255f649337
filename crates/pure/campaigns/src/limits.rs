//! Limits of campaigns, named in one place. docs/limits.md lists each one.

/// Most leaves of the rule of a campaign, and of the condition of a step.
pub const RULE_LEAVES_MAX: usize = 64;
/// Deepest nesting of a rule.
pub const RULE_DEPTH_MAX: usize = 8;
