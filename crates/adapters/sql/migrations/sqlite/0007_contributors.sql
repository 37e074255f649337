-- Everybody who changed what a draft proposes. A draft of an earlier release has no row.
CREATE TABLE draft_contributors (
    draft_id     INTEGER PRIMARY KEY,
    contributors TEXT    NOT NULL                  -- names, as a list in JSON
) STRICT;
