-- The kind of document that a draft proposes. Drafts of earlier releases are of counters.
CREATE TABLE draft_kinds (
    draft_id INTEGER PRIMARY KEY,
    kind     TEXT    NOT NULL
) STRICT;
INSERT INTO draft_kinds (draft_id, kind) SELECT draft_id, 'counter' FROM drafts;
