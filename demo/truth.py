#!/usr/bin/env python3
"""Computes truth-extracts.json: what range counts and series over the committed extracts must answer.

    python3 -m venv /tmp/truth && /tmp/truth/bin/pip install duckdb
    /tmp/truth/bin/python demo/truth.py [--check]

DuckDB reads the extracts and sums them row by row; nothing of raingauge takes part. Neither mappings nor
counter files are read: COUNTERS says in SQL what each counter is meant to count, so that a mistake in
those files shows as a difference. Local days and hours are cut by Python's zoneinfo. The questions are
drawn with a fixed seed; with --check the file is compared, not written.
"""

import argparse
import json
import random
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb

DEMO = Path(__file__).resolve().parent
TARGET = DEMO / "truth-extracts.json"
SEED = 34
QUARTER_S = 900

# What has to be imported before the questions are asked.
IMPORTS = [
    ("taxi", "taxi.csv.gz", "taxi.mapping.toml"),
    ("retail", "retail.csv.gz", "retail.mapping.toml"),
    ("retail", "retail.csv.gz", "retail-invoices.mapping.toml"),
    ("retail", "retail.csv.gz", "retail-distinct-lines.mapping.toml"),
    ("coffee", "coffee.jsonl.gz", "coffee.mapping.toml"),
    ("chicago", "chicago.csv.gz", "chicago.mapping.toml"),
    ("quakes", "quakes.csv.gz", "quakes.mapping.toml"),
]

# Each view is one row per event, with time_s, the event's time in epoch seconds with its fraction. Columns
# stay text, so that a value in a key is what the file says; DuckDB reads an empty cell as NULL.
VIEWS = {
    "taxi": """select *, epoch(pickup_datetime::timestamp) as time_s
               from read_csv('{demo}/taxi.csv.gz', header=true, all_varchar=true)""",
    "retail": """select *, epoch(InvoiceDate::timestamp) as time_s,
                        Quantity::integer as units,
                        Quantity::integer * (UnitPrice::decimal(18,3) * 1000)::bigint as thousandths,
                        InvoiceNo like 'C%' as cancelled
                 from read_csv('{demo}/retail.csv.gz', header=true, all_varchar=true)""",
    "invoice": "select InvoiceNo, any_value(CustomerID) as CustomerID, any_value(Country) as Country,"
               " bool_or(cancelled) as cancelled, min(time_s) as time_s from retail group by InvoiceNo",
    "line": "select distinct InvoiceNo, StockCode, Description, Quantity, time_s, UnitPrice, CustomerID,"
            " Country from retail",
    "coffee": """select *, epoch(("@timestamp"::timestamptz at time zone 'UTC')) as time_s
                 from read_json('{demo}/coffee.jsonl.gz', format='newline_delimited',
                   columns={{entityID:'VARCHAR', beverage:'VARCHAR', beverageSide:'VARCHAR',
                            quantity:'INTEGER', "@timestamp":'VARCHAR'}})""",
    "chicago": """select *, trip_start_timestamp::double as time_s
                  from read_csv('{demo}/chicago.csv.gz', header=true, all_varchar=true)""",
    "quakes": """select *, epoch(strptime(DateTime, '%Y/%m/%d %H:%M:%S.%g')) as time_s
                 from read_csv('{demo}/quakes.csv.gz', header=true, all_varchar=true)""",
}


def cents(column):
    return f"({column}::decimal(18,2) * 100)::bigint"


# (view, prefix of the key, columns of the key, value of an event, which events)
COUNTERS = [
    ("taxi", "taxi:pickups", [], "1", "true"),
    ("taxi", "taxi:vendor", ["vendor_id"], "1", "true"),
    ("taxi", "taxi:vendor_missing", [], "1", "vendor_id is null"),
    ("taxi", "taxi:zone", ["pickup_location_id"], "1", "true"),
    ("taxi", "taxi:vendor_zone", ["vendor_id", "pickup_location_id"], "1", "true"),
    ("taxi", "taxi:payment", ["payment_type"], "1", "true"),
    ("taxi", "taxi:total_cents:payment", ["payment_type"], cents("total_amount"), "true"),
    ("taxi", "taxi:fare_cents:payment", ["payment_type"], cents("fare_amount"), "true"),
    ("taxi", "taxi:tip_cents:payment", ["payment_type"], cents("tip_amount"), "true"),
    ("taxi", "taxi:refunds:payment", ["payment_type"], "1", "total_amount::decimal(18,2) < 0"),
    ("taxi", "taxi:refund_cents:payment", ["payment_type"], cents("total_amount"),
     "total_amount::decimal(18,2) < 0"),
    ("taxi", "taxi:payment_missing", [], "1", "payment_type is null"),
    ("taxi", "taxi:total_cents:payment_missing", [], cents("total_amount"), "payment_type is null"),
    ("taxi", "taxi:fare_cents:payment_missing", [], cents("fare_amount"), "payment_type is null"),
    ("taxi", "taxi:tip_cents:payment_missing", [], cents("tip_amount"), "payment_type is null"),
    ("taxi", "taxi:refunds:payment_missing", [], "1",
     "payment_type is null and total_amount::decimal(18,2) < 0"),
    ("taxi", "taxi:refund_cents:payment_missing", [], cents("total_amount"),
     "payment_type is null and total_amount::decimal(18,2) < 0"),
    ("taxi", "taxi:total_cents", [], cents("total_amount"), "true"),
    ("taxi", "taxi:cash_or_card:zone", ["pickup_location_id"], "1", "payment_type in ('1', '2')"),
    ("retail", "retail:lines", [], "1", "true"),
    ("retail", "retail:units", [], "units", "true"),
    ("retail", "retail:net_thousandths", [], "thousandths", "true"),
    ("retail", "retail:gross_thousandths", [], "thousandths", "not cancelled"),
    ("retail", "retail:cancelled_thousandths", [], "thousandths", "cancelled"),
    ("retail", "retail:cancelled_lines", [], "1", "cancelled"),
    ("retail", "retail:lines_without_customer", [], "1", "CustomerID is null"),
    ("retail", "retail:lines:country", ["Country"], "1", "true"),
    ("retail", "retail:units:country", ["Country"], "units", "true"),
    ("retail", "retail:net_thousandths:country", ["Country"], "thousandths", "true"),
    ("retail", "retail:lines:customer", ["CustomerID"], "1", "true"),
    ("retail", "retail:net_thousandths:customer", ["CustomerID"], "thousandths", "true"),
    ("retail", "retail:gross_thousandths:customer", ["CustomerID"], "thousandths", "not cancelled"),
    ("retail", "retail:cancelled_thousandths:customer", ["CustomerID"], "thousandths", "cancelled"),
    ("retail", "retail:lines:product", ["StockCode"], "1", "true"),
    ("retail", "retail:lines_sold:product", ["StockCode"], "1", "not cancelled and units > 0"),
    ("retail", "retail:units_sold:product", ["StockCode"], "units", "not cancelled and units > 0"),
    ("invoice", "retail:invoices", [], "1", "true"),
    ("invoice", "retail:sales_invoices", [], "1", "not cancelled"),
    ("invoice", "retail:cancelled_invoices", [], "1", "cancelled"),
    ("invoice", "retail:invoices:country", ["Country"], "1", "true"),
    ("invoice", "retail:sales_invoices:country", ["Country"], "1", "not cancelled"),
    ("invoice", "retail:sales_invoices:customer", ["CustomerID"], "1", "not cancelled"),
    ("invoice", "retail:cancelled_invoices:customer", ["CustomerID"], "1", "cancelled"),
    ("line", "retail:distinct_lines", [], "1", "true"),
    ("coffee", "coffee:presses", [], "1", "true"),
    ("coffee", "coffee:beverage", ["beverage"], "1", "true"),
    ("coffee", "coffee:quantity:beverage", ["beverage"], "quantity", "true"),
    ("coffee", "coffee:station", ["entityID"], "1", "true"),
    ("coffee", "coffee:side", ["beverageSide"], "1", "true"),
    ("coffee", "coffee:station_beverage_side", ["entityID", "beverage", "beverageSide"], "1", "true"),
    ("chicago", "chicago:trips", [], "1", "true"),
    ("chicago", "chicago:company", ["company"], "1", "true"),
    ("chicago", "chicago:fare_cents:company", ["company"], cents("fare"), "true"),
    ("chicago", "chicago:tip_cents:company", ["company"], cents("tips"), "true"),
    ("chicago", "chicago:company_missing", [], "1", "company is null"),
    ("chicago", "chicago:fare_cents:company_missing", [], cents("fare"), "company is null"),
    ("chicago", "chicago:tip_cents:company_missing", [], cents("tips"), "company is null"),
    ("chicago", "chicago:payment", ["payment_type"], "1", "true"),
    ("chicago", "chicago:fare_cents:payment", ["payment_type"], cents("fare"), "true"),
    ("chicago", "chicago:tip_cents:payment", ["payment_type"], cents("tips"), "true"),
    ("chicago", "chicago:area", ["pickup_community_area"], "1", "true"),
    ("chicago", "chicago:area_missing", [], "1", "pickup_community_area is null"),
    ("quakes", "quakes:events", [], "1", "true"),
    ("quakes", "quakes:magnitude_4", [], "1", "Magnitude::decimal(6,2) >= 4"),
    ("quakes", "quakes:network", ["Source"], "1", "true"),
    ("quakes", "quakes:magnitude_4:network", ["Source"], "1", "Magnitude::decimal(6,2) >= 4"),
    ("quakes", "quakes:scale", ["MagType"], "1", "true"),
    ("quakes", "quakes:without_number", [], "1", "EventID is null"),
]

# (key, granularity, time zone, first local time, local time after the last), wall times of that zone. The zones
# change their clocks inside the range, at midnight, by half an hour, or sit a quarter hour off the hour.
SERIES = [
    ("taxi:pickups", "day", "America/New_York", "2019-03-07", "2019-03-14"),
    ("taxi:pickups", "day", "America/New_York", "2019-10-31", "2019-11-07"),
    ("taxi:total_cents", "day", "America/New_York", "2019-03-07", "2019-03-14"),
    ("taxi:zone:237", "day", "America/New_York", "2019-01-01", "2020-01-01"),
    ("taxi:pickups", "day", "UTC", "2019-01-01", "2019-03-01"),
    ("taxi:pickups", "hour", "America/New_York", "2019-03-10", "2019-03-11"),
    ("taxi:pickups", "hour", "America/New_York", "2019-11-03", "2019-11-04"),
    ("taxi:pickups", "day", "America/Sao_Paulo", "2019-02-12", "2019-02-20"),
    ("taxi:pickups", "day", "Asia/Beirut", "2019-03-27", "2019-04-03"),
    ("taxi:pickups", "day", "Australia/Lord_Howe", "2019-04-03", "2019-04-10"),
    ("taxi:pickups", "day", "Australia/Lord_Howe", "2019-10-03", "2019-10-09"),
    ("taxi:pickups", "day", "Asia/Kathmandu", "2019-06-01", "2019-06-08"),
    ("taxi:pickups", "hour", "Asia/Kathmandu", "2019-06-01", "2019-06-02"),
    ("taxi:pickups", "hour", "Asia/Kolkata", "2019-06-01", "2019-06-02"),
    ("taxi:payment:1", "quarter", "UTC", "2019-03-15", "2019-03-16"),
    ("taxi:refund_cents:payment:3", "day", "UTC", "2019-05-01", "2019-06-01"),
    ("taxi:vendor_missing", "day", "UTC", "2019-07-01", "2019-08-01"),
    ("retail:lines", "quarter", "UTC", "2011-11-14", "2011-11-15"),
    ("retail:invoices", "quarter", "UTC", "2011-11-14", "2011-11-15"),
    ("retail:net_thousandths", "quarter", "UTC", "2011-11-14", "2011-11-15"),
    ("retail:net_thousandths:country:United Kingdom", "hour", "Europe/London", "2011-11-14", "2011-11-17"),
    ("retail:lines:country:EIRE", "day", "Europe/London", "2011-11-14", "2011-11-21"),
    ("coffee:presses", "quarter", "UTC", "2018-02-28", "2018-03-01"),
    ("coffee:presses", "hour", "America/Los_Angeles", "2018-02-27", "2018-03-02"),
    ("coffee:beverage:Latte", "day", "America/Los_Angeles", "2018-02-27", "2018-03-02"),
    ("chicago:trips", "quarter", "UTC", "2013-10-18T18:00", "2013-10-18T21:00"),
    ("chicago:trips", "day", "America/Chicago", "2013-03-07", "2013-03-14"),
    ("quakes:events", "hour", "UTC", "2016-02-10", "2016-02-12"),
    ("quakes:magnitude_4", "day", "Pacific/Auckland", "2016-02-01", "2016-03-01"),
]


def key_sql(prefix, columns):
    """The key's text; NULL, and so no key, where a column is NULL. The percent sign is escaped first."""
    parts = [f"'{prefix}'"]
    for column in columns:
        parts += ["':'", f"replace(replace({column}, '%', '%25'), ':', '%3A')"]
    return " || ".join(parts)


def load(connection):
    for name, sql in VIEWS.items():
        connection.execute(f"create table {name} as " + sql.format(demo=DEMO))
    connection.execute("create table contributions (counter integer, key varchar, time_s double, value bigint)")
    for number, (view, prefix, columns, value, which) in enumerate(COUNTERS):
        connection.execute(
            f"insert into contributions select {number}, {key_sql(prefix, columns)}, time_s, {value}"
            f" from {view} where ({which}) and {' and '.join(f'{c} is not null' for c in columns) or 'true'}")


def total(connection, key, from_s, to_s):
    (answer,) = connection.execute(
        "select coalesce(sum(value), 0)::bigint from contributions where key = ? and time_s >= ? and time_s < ?",
        [key, from_s, to_s]).fetchone()
    return answer


def floor_quarter(time_s):
    return int(time_s // QUARTER_S) * QUARTER_S


def draw_keys(connection, number, chance):
    """The three keys with most events, and two others."""
    keys = [key for (key,) in connection.execute(
        "select key from contributions where counter = ? group by key order by count(*) desc, key",
        [number]).fetchall()]
    rest = keys[3:]
    return keys[:3] + sorted(chance.sample(rest, min(2, len(rest))))


def draw_ranges(times_s, chance):
    """Ranges that begin near an event, from a quarter hour to the whole span, on quarter-hour edges."""
    first, last = floor_quarter(times_s[0]), floor_quarter(times_s[-1]) + QUARTER_S
    yield first, last
    for _ in range(2):
        start = floor_quarter(chance.choice(times_s)) - QUARTER_S * chance.choice([0, 0, 1, 7, 50])
        quarters = int(2 ** chance.uniform(0, 13))
        yield start, min(start + quarters * QUARTER_S, last + 2 * QUARTER_S)


def count_questions(connection):
    chance = random.Random(SEED)
    questions = []
    for number, (view, prefix, _, _, _) in enumerate(COUNTERS):
        dataset = prefix.split(":")[0]
        keys = draw_keys(connection, number, chance)
        if not keys:
            # No event of the extract reaches this counter; the answer is 0, not an error.
            keys = [prefix]
        times_s = [time_s for (time_s,) in connection.execute(
            f"select time_s from {view} order by time_s").fetchall()]
        for key in keys:
            own = [time_s for (time_s,) in connection.execute(
                "select time_s from contributions where key = ? order by time_s", [key]).fetchall()]
            for position, (from_s, to_s) in enumerate(draw_ranges(own or times_s, chance)):
                questions.append((dataset, key, from_s, to_s, f"{key}.{position}"))
    questions += special_questions(chance, questions)
    return [
        {"id": name, "dataset": dataset, "key": key, "fromTime": from_s, "toTime": to_s,
         "count": total(connection, key, floor_quarter(from_s), floor_quarter(to_s))}
        for dataset, key, from_s, to_s, name in questions
    ]


def special_questions(chance, questions):
    boundary = int(datetime(2013, 10, 18, 18, 45, tzinfo=timezone.utc).timestamp())
    yield "chicago", "chicago:trips", boundary, boundary + 3600, "chicago.boundary"
    yield "taxi", "taxi:zone:99999", 1546300800, 1577836800, "taxi.key_without_events"
    yield "taxi", "taxi:pickups", 1199145600, 1577836800, "taxi.with_the_stray_row_of_2008"
    # Both ends are floored to the quarter hour, so these answer as the floored range does.
    for dataset, key, from_s, to_s, name in chance.sample(questions, 30):
        yield dataset, key, from_s + chance.randrange(QUARTER_S), to_s + chance.randrange(QUARTER_S), \
            f"{name}.unaligned"


def local_edges(granularity, zone_name, start, end):
    """Epoch seconds of every edge from start to end: local midnights, or absolute hours and quarters."""
    zone = ZoneInfo(zone_name)
    first, last = (datetime.fromisoformat(text).replace(tzinfo=zone) for text in (start, end))
    if granularity == "day":
        edges = []
        day = first
        while day <= last:
            edges.append(int(day.timestamp()))
            # Wall-clock arithmetic: the next midnight, however long the day was.
            day = (day.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
        return edges
    step_s = 3600 if granularity == "hour" else QUARTER_S
    return list(range(int(first.timestamp()), int(last.timestamp()) + 1, step_s))


def series_questions(connection):
    answers = []
    for key, granularity, zone, start, end in SERIES:
        edges = local_edges(granularity, zone, start, end)
        points = [{"time": from_s, "count": total(connection, key, from_s, to_s)}
                  for from_s, to_s in zip(edges, edges[1:])]
        answers.append({
            "id": f"{key}.{granularity}.{zone}.{start}", "dataset": key.split(":")[0], "key": key,
            "fromTime": edges[0], "toTime": edges[-1], "granularity": granularity, "timezone": zone,
            "points": points})
    return answers


def imports(connection):
    views = {"retail-invoices.mapping.toml": "invoice", "retail-distinct-lines.mapping.toml": "line"}
    for dataset, file, mapping in IMPORTS:
        (rows,) = connection.execute(f"select count(*) from {dataset}").fetchone()
        (events,) = connection.execute(f"select count(*) from {views.get(mapping, dataset)}").fetchone()
        yield {"dataset": dataset, "file": file, "mapping": mapping, "counters": f"{dataset}.counters.yaml",
               "rows": rows, "accepted": events, "duplicates": rows - events}


def lines(name, items):
    return f'"{name}": [\n' + ",\n".join(json.dumps(item) for item in items) + "\n]"


def main():
    parser = argparse.ArgumentParser(description="Compute truth-extracts.json with DuckDB.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    load(connection)
    about = ("Answers over the committed extracts, computed by demo/truth.py with DuckDB from the files' rows. "
             "Times are epoch seconds; ranges are half-open and both ends are floored to the quarter hour. "
             "Points list every bucket of the range, also those that count 0.")
    questions, series = count_questions(connection), series_questions(connection)
    text = "{\n" + ",\n".join([
        f'"about": {json.dumps(about)}', f'"engine": "duckdb {duckdb.__version__}"',
        lines("imports", imports(connection)), lines("questions", questions), lines("series", series)]) + "\n}\n"
    if arguments.check:
        same = TARGET.is_file() and TARGET.read_text() == text
        print(f"{TARGET.name}: {'same' if same else 'DIFFERENT'}")
        sys.exit(0 if same else 1)
    TARGET.write_text(text)
    print(f"{TARGET.name}: {len(questions)} counts, {sum(q['count'] != 0 for q in questions)} of them not 0; "
          f"{len(series)} series with {sum(len(s['points']) for s in series)} points")


if __name__ == "__main__":
    main()
