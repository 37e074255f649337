-- The books of points. A turn locks the heads of its books first, and releases them when all its rows are committed.
-- Names and ids are UTF-8 in blobs, so that all databases compare and order them by their bytes.
CREATE TABLE points_heads (
    book        INTEGER PRIMARY KEY,
    turns       INTEGER NOT NULL,                -- grows with every turn that locked the head
    sequence    INTEGER NOT NULL,                -- of the last entry; 0 if there is none
    recorded_ms INTEGER NOT NULL,                -- milliseconds since 1970; never goes back
    hash        BLOB    NOT NULL,                -- 32 bytes, chained over all turns
    position    INTEGER NOT NULL,                -- offset behind the last event of the log that is included
    versions    TEXT    NOT NULL                 -- JSON: the version of each programme in force
) STRICT;

-- What is true of a member of a programme: a function of its entries.
CREATE TABLE points_wallets (
    book      INTEGER NOT NULL,
    programme BLOB    NOT NULL,
    member    BLOB    NOT NULL,
    due_hour  INTEGER,                           -- hours since 1970, when something of it is due; NULL: never
    record    BLOB    NOT NULL,
    PRIMARY KEY (book, programme, member)
) STRICT, WITHOUT ROWID;
CREATE INDEX points_wallets_by_hour ON points_wallets (book, due_hour, programme, member);

-- Every entry, kept for ever. Sequences of a book, and of a member, have no gap.
CREATE TABLE points_entries (
    book            INTEGER NOT NULL,
    sequence        INTEGER NOT NULL,
    programme       BLOB    NOT NULL,
    member          BLOB    NOT NULL,            -- empty: an entry of no member
    member_sequence INTEGER NOT NULL,
    recorded_ms     INTEGER NOT NULL,            -- milliseconds since 1970
    body            BLOB    NOT NULL,
    PRIMARY KEY (book, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX points_entries_by_member
    ON points_entries (book, programme, member, member_sequence, recorded_ms);

-- What makes an entry happen once, in all books.
CREATE TABLE points_keys (
    hash     BLOB    NOT NULL PRIMARY KEY,       -- 16 bytes
    book     INTEGER NOT NULL,
    sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was earned for a reference, and how much of it was taken back.
CREATE TABLE points_references (
    programme BLOB NOT NULL,
    reference BLOB NOT NULL,
    record    BLOB NOT NULL,
    PRIMARY KEY (programme, reference)
) STRICT, WITHOUT ROWID;

-- Sums of a programme in a book.
CREATE TABLE points_totals (
    book      INTEGER NOT NULL,
    programme BLOB    NOT NULL,
    total     BLOB    NOT NULL,                  -- such as issued:food, outstanding:2026-07
    amount    TEXT    NOT NULL,                  -- a whole number of up to 39 digits
    PRIMARY KEY (book, programme, total)
) STRICT, WITHOUT ROWID;

-- What was used of budgets, over all books. A turn locks the rows of its budgets behind its heads.
CREATE TABLE points_budgets (
    programme BLOB    NOT NULL,
    name      BLOB    NOT NULL,
    used      INTEGER NOT NULL,
    PRIMARY KEY (programme, name)
) STRICT, WITHOUT ROWID;

-- How far the readers of entries are.
CREATE TABLE points_positions (
    consumer TEXT    NOT NULL,
    book     INTEGER NOT NULL,
    sequence INTEGER NOT NULL,                   -- of the last entry that was delivered
    PRIMARY KEY (consumer, book)
) STRICT, WITHOUT ROWID;

-- The queues of points. A change of a queue begins with its row.
CREATE TABLE points_queues (
    queue  INTEGER PRIMARY KEY,
    newest INTEGER NOT NULL                      -- the number of the newest letter
) STRICT;
INSERT INTO points_queues (queue, newest) VALUES (1, 0), (2, 0), (3, 0), (4, 0);

CREATE TABLE points_letters (
    queue       INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    body        BLOB    NOT NULL,
    first_error BLOB,
    sent_ms     INTEGER NOT NULL,                -- milliseconds since 1970
    visible_ms  INTEGER,                         -- NULL: the letter is dead
    receives    INTEGER NOT NULL,
    ticket      INTEGER,                         -- the receipt of the last receive
    died_ms     INTEGER,
    reason      BLOB,
    last_error  BLOB,
    PRIMARY KEY (queue, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX points_letters_by_time ON points_letters (queue, visible_ms, number);
CREATE INDEX points_letters_by_ticket ON points_letters (queue, ticket);
CREATE INDEX points_letters_by_death ON points_letters (queue, died_ms, number);
