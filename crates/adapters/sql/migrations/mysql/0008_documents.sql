-- Each statement can be repeated, as in the first migration.

-- One row: grows with every change of a document of a product. A change begins by adding 1.
CREATE TABLE IF NOT EXISTS product_documents_revision (
    only_row TINYINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    revision BIGINT  NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO product_documents_revision (only_row, revision) VALUES (1, 0);

-- All versions of documents of products, such as campaigns.
CREATE TABLE IF NOT EXISTS product_documents (
    kind          VARCHAR(64)  NOT NULL,
    id            VARCHAR(128) NOT NULL,
    version       BIGINT       NOT NULL,
    revision      BIGINT       NOT NULL,             -- the change that made the version
    number        BIGINT       NOT NULL,             -- the id, if it is a number; otherwise 0
    configuration LONGTEXT     NOT NULL,             -- JSON
    is_deleted    BIGINT       NOT NULL,
    changed_by    TEXT         NOT NULL,
    reason        TEXT         NOT NULL,
    changed_ms    BIGINT       NOT NULL,             -- milliseconds since 1970
    PRIMARY KEY (kind, id, version),
    KEY product_documents_by_revision (revision),
    KEY product_documents_by_number (kind, number)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
