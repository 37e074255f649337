-- Every version of every counter, kept for ever. A change adds one row and touches no other.
CREATE TABLE counter_versions (
    revision      INTEGER PRIMARY KEY,                       -- grows with every change of the catalog
    counter_id    INTEGER NOT NULL CHECK (counter_id > 0),
    version       INTEGER NOT NULL CHECK (version > 0),      -- 1, 2, 3 … of its counter
    configuration TEXT    NOT NULL CHECK (json_valid(configuration)),
    changed_by    TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    changed_at    INTEGER NOT NULL,                          -- seconds since 1970
    UNIQUE (counter_id, version)
) STRICT;

-- Every counter at its newest version.
CREATE VIEW counters AS
SELECT v.counter_id, v.version, v.configuration, v.changed_by, v.reason, v.changed_at
FROM counter_versions v
JOIN (SELECT counter_id, MAX(version) AS version FROM counter_versions GROUP BY counter_id) newest
    ON newest.counter_id = v.counter_id AND newest.version = v.version;
