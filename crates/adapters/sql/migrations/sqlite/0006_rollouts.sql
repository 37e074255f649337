-- One row: grows with every change of a rollout.
CREATE TABLE rollouts_revision (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO rollouts_revision (only_row, revision) VALUES (1, 0);

-- Guarded rollouts of the cache. Times are seconds since 1970.
CREATE TABLE rollouts (
    rollout_id INTEGER PRIMARY KEY,
    revision   INTEGER NOT NULL,                   -- grows by one with each change of the rollout
    started_at INTEGER NOT NULL,
    started_by TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    ended_at   INTEGER,                            -- null while it runs
    conductor  TEXT    NOT NULL,                   -- the process that conducts it
    rollout    TEXT    NOT NULL                    -- JSON
) STRICT;
