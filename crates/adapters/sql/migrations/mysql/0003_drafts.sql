-- Each statement can be repeated, as in the first migration.

-- One row: grows with every change of a draft. A change begins by adding 1.
CREATE TABLE IF NOT EXISTS drafts_revision (
    only_row TINYINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    revision BIGINT  NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO drafts_revision (only_row, revision) VALUES (1, 0);

-- Proposed configurations. Times are seconds since 1970.
CREATE TABLE IF NOT EXISTS drafts (
    draft_id        BIGINT     NOT NULL PRIMARY KEY,
    revision        BIGINT     NOT NULL,                 -- grows by one with each change of the draft
    state           TEXT       NOT NULL,                 -- draft, review, applied, rejected, withdrawn
    is_open         BIGINT     NOT NULL,                 -- 1 while something may come of it
    configuration   LONGTEXT   NOT NULL,                 -- JSON
    base_version    BIGINT     NOT NULL,                 -- of the counter; 0 for a new one
    applied_version BIGINT     NOT NULL,                 -- 0 while it has not been applied
    author          TEXT       NOT NULL,
    reason          TEXT       NOT NULL,
    reviewer        TEXT       NOT NULL,
    comment         TEXT       NOT NULL,
    created_at      BIGINT     NOT NULL,
    changed_at      BIGINT     NOT NULL,
    changed_by      TEXT       NOT NULL,
    KEY drafts_by_change (is_open, changed_at, draft_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
