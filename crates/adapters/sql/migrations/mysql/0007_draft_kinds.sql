-- Each statement can be repeated, as in the first migration.

-- The kind of document that a draft proposes. Drafts of earlier releases are of counters.
CREATE TABLE IF NOT EXISTS draft_kinds (
    draft_id BIGINT NOT NULL PRIMARY KEY,
    kind     TEXT   NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO draft_kinds (draft_id, kind) SELECT draft_id, 'counter' FROM drafts;
