CREATE TABLE cache_policies (
    version INTEGER PRIMARY KEY,
    policy TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- Seconds since 1970.
    changed_at INTEGER NOT NULL
) STRICT;
