-- Each statement can be repeated, as in the first migration.

-- Everybody who changed what a draft proposes. A draft of an earlier release has no row.
CREATE TABLE IF NOT EXISTS draft_contributors (
    draft_id     BIGINT NOT NULL PRIMARY KEY,
    contributors TEXT   NOT NULL                       -- names, as a list in JSON
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
