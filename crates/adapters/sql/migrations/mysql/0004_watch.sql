-- Each statement can be repeated, as in the first migration.

-- The running processes, each as it announces itself. Times are seconds since 1970.
CREATE TABLE IF NOT EXISTS instances (
    instance_id VARCHAR(64) NOT NULL PRIMARY KEY,
    name        TEXT        NOT NULL,
    roles       TEXT        NOT NULL,              -- with commas
    version     TEXT        NOT NULL,
    address     TEXT        NOT NULL,
    started_at  BIGINT      NOT NULL,
    seen_at     BIGINT      NOT NULL,
    measures    MEDIUMTEXT  NOT NULL               -- JSON
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Stored counts beside those that the log comes to. An id is never given twice. `stored` is a word of
-- MySQL, and needs its quotes.
CREATE TABLE IF NOT EXISTS checks (
    check_id      BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
    checked_at    BIGINT      NOT NULL,
    checked_by    TEXT        NOT NULL,
    counter_id    BIGINT      NOT NULL,
    checked_key   TEXT        NOT NULL,
    from_time     BIGINT      NOT NULL,
    to_time       BIGINT      NOT NULL,
    compared_from BIGINT      NOT NULL,
    outcome       VARCHAR(16) NOT NULL,
    `stored`      VARCHAR(48) NOT NULL,            -- wider than an integer
    recounted     VARCHAR(48) NOT NULL,
    detail        TEXT        NOT NULL,
    differences   MEDIUMTEXT  NOT NULL,            -- JSON
    KEY checks_by_outcome (outcome, check_id),
    KEY checks_by_key (checked_key(191))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
