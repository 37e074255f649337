-- One row: grows with every change of users, links and tokens.
CREATE TABLE people_revision (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO people_revision (only_row, revision) VALUES (1, 0);

-- Who may sign in. Times are seconds since 1970.
CREATE TABLE users (
    user_id      INTEGER PRIMARY KEY,
    handle       TEXT    NOT NULL UNIQUE,          -- the name in lower case
    name         TEXT    NOT NULL,
    email        TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    password     TEXT    NOT NULL,                 -- Argon2id in PHC form, or empty
    openid       TEXT    NOT NULL,                 -- issuer and subject, or empty
    created_at   INTEGER NOT NULL,
    signed_in_at INTEGER,
    disabled_at  INTEGER
) STRICT;

-- Hashes here are SHA-256 in hexadecimal; the secrets themselves are nowhere.
CREATE TABLE sessions (
    session_hash TEXT    NOT NULL PRIMARY KEY,
    user_id      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    address      TEXT    NOT NULL,
    browser      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_of_user ON sessions (user_id);

CREATE TABLE invitations (
    invitation_hash TEXT    NOT NULL PRIMARY KEY,
    handle          TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    email           TEXT    NOT NULL,
    role            TEXT    NOT NULL,
    invited_by      TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_tokens (
    token_id   INTEGER PRIMARY KEY,
    token_hash TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    used_at    INTEGER
) STRICT;

-- Who changed what. An id is never given twice.
CREATE TABLE audit_entries (
    entry_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    who      TEXT    NOT NULL,
    address  TEXT    NOT NULL,
    verb     TEXT    NOT NULL,
    object   TEXT    NOT NULL,
    details  TEXT    NOT NULL,
    outcome  TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_entries_by_time ON audit_entries (at);
