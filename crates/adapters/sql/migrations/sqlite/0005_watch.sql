-- The running processes, each as it announces itself. Times are seconds since 1970.
CREATE TABLE instances (
    instance_id TEXT    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    roles       TEXT    NOT NULL,                  -- with commas
    version     TEXT    NOT NULL,
    address     TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    measures    TEXT    NOT NULL                   -- JSON
) STRICT;

-- Stored counts beside those that the log comes to. An id is never given twice.
CREATE TABLE checks (
    check_id      INTEGER PRIMARY KEY AUTOINCREMENT,
    checked_at    INTEGER NOT NULL,
    checked_by    TEXT    NOT NULL,
    counter_id    INTEGER NOT NULL,
    checked_key   TEXT    NOT NULL,
    from_time     INTEGER NOT NULL,
    to_time       INTEGER NOT NULL,
    compared_from INTEGER NOT NULL,
    outcome       TEXT    NOT NULL,
    stored        TEXT    NOT NULL,                -- wider than an integer
    recounted     TEXT    NOT NULL,
    detail        TEXT    NOT NULL,
    differences   TEXT    NOT NULL                 -- JSON
) STRICT;
CREATE INDEX checks_by_outcome ON checks (outcome, check_id);
CREATE INDEX checks_by_key ON checks (checked_key);
