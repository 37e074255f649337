-- One row: grows with every change of a document of a product.
CREATE TABLE product_documents_revision (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO product_documents_revision (only_row, revision) VALUES (1, 0);

-- All versions of documents of products, such as campaigns.
CREATE TABLE product_documents (
    kind          TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    revision      INTEGER NOT NULL,              -- the change that made the version
    number        INTEGER NOT NULL,              -- the id, if it is a number; otherwise 0
    configuration TEXT    NOT NULL,              -- JSON
    is_deleted    INTEGER NOT NULL,
    changed_by    TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    changed_ms    INTEGER NOT NULL,              -- milliseconds since 1970
    PRIMARY KEY (kind, id, version)
) STRICT;
CREATE INDEX product_documents_by_revision ON product_documents (revision);
CREATE INDEX product_documents_by_number ON product_documents (kind, number);
