#!/usr/bin/env python3
"""Cuts the committed extracts out of the whole files, always the same rows.

    python3 demo/extract.py [--data DIR] [--check]

DIR holds the whole files that docs/evidence/data.md names (default: ../shared/data beside the repository).
Every cell is copied as text, in the order of the source, so an extract keeps the quirks of its source:
late rows, empty cells, negative amounts, exact duplicates. With --check nothing is written; the
extracts in the repository are compared with what would be written, and a difference exits with 1.
"""

import argparse
import csv
import gzip
import hashlib
import io
import sys
from decimal import Decimal
from pathlib import Path

DEMO = Path(__file__).resolve().parent
DEFAULT_DATA = DEMO.parent.parent / "shared" / "data"

# Every 3rd row keeps the taxi extract under 450 KB; every 10th trip of Chicago is plenty for a demo.
TAXI_STEP = 3
CHICAGO_STEP = 10
# chicago.boundary in truth.json: trips exactly on both edges of this range, so both edges are kept.
CHICAGO_BOUNDARY_S = (1382121900, 1382125500)


def keep_taxi(row, position):
    """Every 3rd row of 2019, and every row that is odd: no vendor, a negative total, a stray month."""
    if not row["source_month"].startswith("2019"):
        return False
    stray = not row["pickup_datetime"].startswith(row["source_month"])
    refund = Decimal(row["total_amount"]) < 0
    return position % TAXI_STEP == 0 or row["vendor_id"] == "" or refund or stray


def keep_chicago(row, position):
    """Every 10th trip, and every trip inside the boundary range or on either edge of it."""
    first, last = CHICAGO_BOUNDARY_S
    return position % CHICAGO_STEP == 0 or first <= int(row["trip_start_timestamp"]) <= last


def keep_quakes(row, _position):
    """February 2016: the month that holds all 22 duplicates of the file, and 121 rows without an id."""
    return row["DateTime"].startswith("2016/02/")


def keep_retail(row, _position):
    """The week from Monday 2011-11-14: bursts, cancellations, exact duplicates, lines without customer."""
    return "2011-11-14" <= row["InvoiceDate"][:10] < "2011-11-21"


# extract: (whole file, columns kept, which rows)
CSV_EXTRACTS = {
    "taxi.csv.gz": (
        "nyc_yellow_taxi_sample_2018_2019.csv.gz",
        ["vendor_id", "pickup_datetime", "pickup_location_id", "payment_type",
         "fare_amount", "tip_amount", "total_amount"],
        keep_taxi,
    ),
    "chicago.csv.gz": (
        "chicago_taxi_sample.csv.gz",
        ["pickup_community_area", "fare", "trip_start_timestamp", "payment_type", "company", "tips"],
        keep_chicago,
    ),
    "quakes.csv.gz": (
        "ncedc_earthquakes_2016.csv.gz",
        ["DateTime", "Magnitude", "MagType", "Source", "EventID"],
        keep_quakes,
    ),
    "retail.csv.gz": (
        "online_retail.csv.gz",
        ["InvoiceNo", "StockCode", "Description", "Quantity", "InvoiceDate", "UnitPrice",
         "CustomerID", "Country"],
        keep_retail,
    ),
}
# Small enough to be committed whole.
WHOLE_FILES = {"coffee.jsonl.gz": "elasticoffee_2018.jsonl.gz"}


def cut_csv(source, columns, keep):
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    with gzip.open(source, "rt", encoding="utf-8", newline="") as lines:
        for position, row in enumerate(csv.DictReader(lines)):
            if keep(row, position):
                writer.writerow(row)
    return text.getvalue().encode("utf-8")


def packed(content):
    """gzip without name or time, so that the same content gives the same bytes."""
    target = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=target, mtime=0) as stream:
        stream.write(content)
    return target.getvalue()


def contents(data):
    for name, (source, columns, keep) in CSV_EXTRACTS.items():
        yield name, cut_csv(data / source, columns, keep)
    for name, source in WHOLE_FILES.items():
        with gzip.open(data / source, "rb") as stream:
            yield name, stream.read()


def main():
    parser = argparse.ArgumentParser(description="Cut the committed extracts out of the whole files.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the whole files")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    sources = [source for source, _, _ in CSV_EXTRACTS.values()] + list(WHOLE_FILES.values())
    missing = [source for source in sources if not (arguments.data / source).is_file()]
    if missing:
        sys.exit(f"{arguments.data}: {', '.join(missing)} not found; docs/evidence/data.md says where each file "
                 "comes from; give their folder with --data DIR")

    different = 0
    for name, content in contents(arguments.data):
        target = DEMO / name
        if arguments.check:
            # The content is compared, not the packing: another zlib may pack the same content otherwise.
            same = target.is_file() and gzip.decompress(target.read_bytes()) == content
            different += not same
            state = "same" if same else "DIFFERENT"
        else:
            target.write_bytes(packed(content))
            state = f"{target.stat().st_size:>7} bytes"
        rows = content.count(b"\n") - (0 if name.endswith("jsonl.gz") else 1)
        print(f"{name:<16} {rows:>6} rows  {state}  sha256 {hashlib.sha256(content).hexdigest()}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
