-- Each statement can be repeated, as in the first migration.

-- The books of points. A turn locks the heads of its books first, and releases them when all its rows are committed.
-- Names and ids are UTF-8 in binary columns: a text column would take `bob` and `bob ` for the same member.
CREATE TABLE IF NOT EXISTS points_heads (
    book        BIGINT     NOT NULL PRIMARY KEY,
    turns       BIGINT     NOT NULL,                 -- grows with every turn that locked the head
    sequence    BIGINT     NOT NULL,                 -- of the last entry; 0 if there is none
    recorded_ms BIGINT     NOT NULL,                 -- milliseconds since 1970; never goes back
    hash        BINARY(32) NOT NULL,                 -- chained over all turns
    position    BIGINT     NOT NULL,                 -- offset behind the last event of the log that is included
    versions    MEDIUMTEXT NOT NULL                  -- JSON: the version of each programme in force
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What is true of a member of a programme: a function of its entries. The primary key begins with the book, so that no
-- turn locks a gap into which a turn of another book inserts.
CREATE TABLE IF NOT EXISTS points_wallets (
    book      BIGINT         NOT NULL,
    programme VARBINARY(160) NOT NULL,
    member    VARBINARY(512) NOT NULL,
    due_hour  BIGINT,                                -- hours since 1970, when something of it is due; NULL: never
    record    MEDIUMBLOB     NOT NULL,
    PRIMARY KEY (book, programme, member),
    KEY points_wallets_by_hour (book, due_hour, programme, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Every entry, kept for ever. Sequences of a book, and of a member, have no gap.
CREATE TABLE IF NOT EXISTS points_entries (
    book            BIGINT         NOT NULL,
    sequence        BIGINT         NOT NULL,
    programme       VARBINARY(160) NOT NULL,
    member          VARBINARY(512) NOT NULL,         -- empty: an entry of no member
    member_sequence BIGINT         NOT NULL,
    recorded_ms     BIGINT         NOT NULL,         -- milliseconds since 1970
    body            MEDIUMBLOB     NOT NULL,
    PRIMARY KEY (book, sequence),
    KEY points_entries_by_member (book, programme, member, member_sequence, recorded_ms)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What makes an entry happen once, in all books.
CREATE TABLE IF NOT EXISTS points_keys (
    hash     BINARY(16) NOT NULL PRIMARY KEY,
    book     BIGINT     NOT NULL,
    sequence BIGINT     NOT NULL
) ENGINE = InnoDB;

-- What was earned for a reference, and how much of it was taken back.
CREATE TABLE IF NOT EXISTS points_references (
    programme VARBINARY(160) NOT NULL,
    reference VARBINARY(512) NOT NULL,
    record    MEDIUMBLOB     NOT NULL,
    PRIMARY KEY (programme, reference)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Sums of a programme in a book.
CREATE TABLE IF NOT EXISTS points_totals (
    book      BIGINT         NOT NULL,
    programme VARBINARY(160) NOT NULL,
    total     VARBINARY(512) NOT NULL,               -- such as issued:food, outstanding:2026-07
    amount    VARCHAR(48)    NOT NULL,               -- a whole number of up to 39 digits
    PRIMARY KEY (book, programme, total)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What was used of budgets, over all books. A turn locks the rows of its budgets behind its heads.
CREATE TABLE IF NOT EXISTS points_budgets (
    programme VARBINARY(160) NOT NULL,
    name      VARBINARY(512) NOT NULL,
    used      BIGINT         NOT NULL,
    PRIMARY KEY (programme, name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- How far the readers of entries are.
CREATE TABLE IF NOT EXISTS points_positions (
    consumer VARCHAR(128) NOT NULL,
    book     BIGINT       NOT NULL,
    sequence BIGINT       NOT NULL,                  -- of the last entry that was delivered
    PRIMARY KEY (consumer, book)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The queues of points. A change of a queue begins with its row.
CREATE TABLE IF NOT EXISTS points_queues (
    queue  BIGINT NOT NULL PRIMARY KEY,
    newest BIGINT NOT NULL                           -- the number of the newest letter
) ENGINE = InnoDB;
INSERT IGNORE INTO points_queues (queue, newest) VALUES (1, 0), (2, 0), (3, 0), (4, 0);

CREATE TABLE IF NOT EXISTS points_letters (
    queue       BIGINT         NOT NULL,
    number      BIGINT         NOT NULL,
    id          VARBINARY(512) NOT NULL,
    body        MEDIUMBLOB     NOT NULL,
    first_error VARBINARY(512),
    sent_ms     BIGINT         NOT NULL,             -- milliseconds since 1970
    visible_ms  BIGINT,                              -- NULL: the letter is dead
    receives    BIGINT         NOT NULL,
    ticket      BIGINT,                              -- the receipt of the last receive
    died_ms     BIGINT,
    reason      VARBINARY(512),
    last_error  VARBINARY(512),
    PRIMARY KEY (queue, number),
    KEY points_letters_by_time (queue, visible_ms, number),
    KEY points_letters_by_ticket (queue, ticket),
    KEY points_letters_by_death (queue, died_ms, number)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
