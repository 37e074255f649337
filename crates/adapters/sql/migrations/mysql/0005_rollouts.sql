-- Each statement can be repeated, as in the first migration.

-- One row: grows with every change of a rollout. A change begins by adding 1.
CREATE TABLE IF NOT EXISTS rollouts_revision (
    only_row TINYINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    revision BIGINT  NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO rollouts_revision (only_row, revision) VALUES (1, 0);

-- Guarded rollouts of the cache. Times are seconds since 1970.
CREATE TABLE IF NOT EXISTS rollouts (
    rollout_id BIGINT      NOT NULL PRIMARY KEY,
    revision   BIGINT      NOT NULL,               -- grows by one with each change of the rollout
    started_at BIGINT      NOT NULL,
    started_by TEXT        NOT NULL,
    reason     TEXT        NOT NULL,
    ended_at   BIGINT,                             -- null while it runs
    conductor  VARCHAR(64) NOT NULL,               -- the process that conducts it
    rollout    LONGTEXT    NOT NULL                -- JSON
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
