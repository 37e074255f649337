-- MySQL commits at every statement that makes a table or a view, so that a migration may stop halfway.
-- Each statement here can therefore be repeated.

-- Every version of every counter, kept for ever. A change adds one row and touches no other.
CREATE TABLE IF NOT EXISTS counter_versions (
    revision      BIGINT     NOT NULL PRIMARY KEY,                              -- grows with every change of the catalog
    counter_id    BIGINT     NOT NULL CHECK (counter_id > 0),
    version       BIGINT     NOT NULL CHECK (version > 0),                      -- 1, 2, 3 … of its counter
    configuration LONGTEXT   NOT NULL CHECK (JSON_VALID(configuration)),        -- a JSON column would rewrite numbers
    changed_by    MEDIUMTEXT NOT NULL,
    reason        MEDIUMTEXT NOT NULL,
    changed_at    BIGINT     NOT NULL,                                          -- seconds since 1970
    UNIQUE KEY counter_and_version (counter_id, version)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Every version of the cache policy, kept for ever.
CREATE TABLE IF NOT EXISTS cache_policies (
    version    BIGINT     NOT NULL PRIMARY KEY CHECK (version > 0),             -- 1, 2, 3 …
    policy     LONGTEXT   NOT NULL CHECK (JSON_VALID(policy)),
    changed_by MEDIUMTEXT NOT NULL,
    reason     MEDIUMTEXT NOT NULL,
    changed_at BIGINT     NOT NULL                                              -- seconds since 1970
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row: the number of changes so far. A change begins by adding 1, which keeps all others waiting until it ends.
CREATE TABLE IF NOT EXISTS catalog_revision (
    only_row TINYINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    revision BIGINT  NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO catalog_revision (only_row, revision) VALUES (1, 0);

-- Every counter at its newest version. It is read with the rights of the reader, so that its maker may be dropped.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW counters AS
SELECT v.counter_id, v.version, v.configuration, v.changed_by, v.reason, v.changed_at
FROM counter_versions v
JOIN (SELECT counter_id, MAX(version) AS version FROM counter_versions GROUP BY counter_id) newest
    ON newest.counter_id = v.counter_id AND newest.version = v.version;
