-- One row: grows with every change of a draft.
CREATE TABLE drafts_revision (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO drafts_revision (only_row, revision) VALUES (1, 0);

-- Proposed configurations. Times are seconds since 1970.
CREATE TABLE drafts (
    draft_id        INTEGER PRIMARY KEY,
    revision        INTEGER NOT NULL,              -- grows by one with each change of the draft
    state           TEXT    NOT NULL,              -- draft, review, applied, rejected, withdrawn
    is_open         INTEGER NOT NULL,              -- 1 while something may come of it
    configuration   TEXT    NOT NULL,              -- JSON
    base_version    INTEGER NOT NULL,              -- of the counter; 0 for a new one
    applied_version INTEGER NOT NULL,              -- 0 while it has not been applied
    author          TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    reviewer        TEXT    NOT NULL,
    comment         TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    changed_at      INTEGER NOT NULL,
    changed_by      TEXT    NOT NULL
) STRICT;
CREATE INDEX drafts_by_change ON drafts (is_open, changed_at, draft_id);
