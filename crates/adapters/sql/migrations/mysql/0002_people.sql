-- Each statement can be repeated, as in the first migration.

-- One row: grows with every change of users, links and tokens. A change begins by adding 1.
CREATE TABLE IF NOT EXISTS people_revision (
    only_row TINYINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    revision BIGINT  NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO people_revision (only_row, revision) VALUES (1, 0);

-- Who may sign in. Times are seconds since 1970.
CREATE TABLE IF NOT EXISTS users (
    user_id      BIGINT       NOT NULL PRIMARY KEY,
    handle       VARCHAR(512) NOT NULL,                  -- the name in lower case
    name         TEXT         NOT NULL,
    email        TEXT         NOT NULL,
    role         TEXT         NOT NULL,
    password     TEXT         NOT NULL,                  -- Argon2id in PHC form, or empty
    openid       TEXT         NOT NULL,                  -- issuer and subject, or empty
    created_at   BIGINT       NOT NULL,
    signed_in_at BIGINT,
    disabled_at  BIGINT,
    UNIQUE KEY users_by_handle (handle)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Hashes here are SHA-256 in hexadecimal; the secrets themselves are nowhere.
CREATE TABLE IF NOT EXISTS sessions (
    session_hash CHAR(64)   NOT NULL PRIMARY KEY,
    user_id      BIGINT     NOT NULL,
    created_at   BIGINT     NOT NULL,
    seen_at      BIGINT     NOT NULL,
    expires_at   BIGINT     NOT NULL,
    address      TEXT       NOT NULL,
    browser      TEXT       NOT NULL,
    KEY sessions_of_user (user_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS invitations (
    invitation_hash CHAR(64)     NOT NULL PRIMARY KEY,
    handle          VARCHAR(512) NOT NULL,
    name            TEXT         NOT NULL,
    email           TEXT         NOT NULL,
    role            TEXT         NOT NULL,
    invited_by      TEXT         NOT NULL,
    created_at      BIGINT       NOT NULL,
    expires_at      BIGINT       NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS api_tokens (
    token_id   BIGINT   NOT NULL PRIMARY KEY,
    token_hash CHAR(64) NOT NULL,
    name       TEXT     NOT NULL,
    scopes     TEXT     NOT NULL,
    created_by TEXT     NOT NULL,
    created_at BIGINT   NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    used_at    BIGINT,
    UNIQUE KEY api_tokens_by_hash (token_hash)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Who changed what. An id is never given twice.
CREATE TABLE IF NOT EXISTS audit_entries (
    entry_id BIGINT     NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at       BIGINT     NOT NULL,
    who      TEXT       NOT NULL,
    address  TEXT       NOT NULL,
    verb     TEXT       NOT NULL,
    object   TEXT       NOT NULL,
    details  MEDIUMTEXT NOT NULL,
    outcome  TEXT       NOT NULL,
    KEY audit_entries_by_time (at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
