"""The questions of truth.json, asked through raingauge: how scripts/truth gets each answer's rows.

Which values occur (zones, customers, products) is read from the whole files, because a count is asked by
key; every number in an answer comes from the server.
"""

import collections
import csv
import functools
import gzip
import json
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal

TAXI = "nyc_yellow_taxi_sample_2018_2019.csv.gz"
RETAIL = "online_retail.csv.gz"
COFFEE = "elasticoffee_2018.jsonl.gz"
CHICAGO = "chicago_taxi_sample.csv.gz"
QUAKES = "ncedc_earthquakes_2016.csv.gz"

OUT_OF_SCOPE = {
    "retail.points_floor_per_invoice": "rounds every invoice on its own; a count keeps only sums",
}
# Columns that are not counts; the rest of the row is compared.
COLUMNS_OUT_OF_SCOPE = {
    "quakes.month": {"mx": "a maximum is not a sum"},
    "retail.duplicates": {"groups": "how often a line repeats is not kept, only that it does"},
}
DATASETS_OUT_OF_SCOPE = {"accesslog": "no demo counters for this file", "weather": "no demo counters for this file"}


# ---- times, money, and the values that occur in a file -----------------------------------------------------

def at(text):
    """Epoch seconds of a naive time; the files' wall times are counted as if they were UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp())


def span(start, end):
    return at(start), at(end)


def bucket_text(time_s):
    return datetime.fromtimestamp(time_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def months(first, last):
    """(name, from, to) of every month from first to last, both `YYYY-MM`."""
    start = datetime.fromisoformat(first + "-01")
    while (name := start.strftime("%Y-%m")) <= last:
        end = (start + timedelta(days=32)).replace(day=1)
        yield name, at(str(start)), at(str(end))
        start = end


def money(value, decimals):
    return f"{Decimal(value).scaleb(-decimals):.{decimals}f}"


def escaped(value):
    """A field's value as it stands in a key: %, : and control characters as %XX, everything else verbatim."""
    return re.sub(r"[%:\x00-\x1f\x7f-\x9f]",
                  lambda found: "".join(f"%{byte:02X}" for byte in found.group(0).encode()), value)


ALL = span("2008-01-01", "2020-01-01")
SHOP = span("2010-12-01", "2011-12-10")
TAXI_RANGES = {
    "range1": span("2018-12-31 18:00", "2019-01-01 06:00"),
    "range2": span("2019-03-15 00:00", "2019-03-16 00:00"),
    "range3": span("2018-07-04 17:15", "2018-07-05 02:45"),
    "range4": span("2018-01-01 00:00", "2020-01-01 00:00"),
}


class Files:
    """Which values occur in the whole files: the keys to ask for. The counts come from the server alone."""

    def __init__(self, data):
        self.data = data

    @functools.cache
    def columns(self, file, *names):
        """The rows of a CSV file, cut to the named columns."""
        with gzip.open(self.data / file, "rt", encoding="utf-8", newline="") as lines:
            rows = csv.reader(lines)
            header = next(rows)
            positions = [header.index(name) for name in names or header]
            return [tuple(row[position] for position in positions) for row in rows]

    @functools.cache
    def values(self, file, column):
        return sorted({value for (value,) in self.columns(file, column)} - {""})

    @functools.cache
    def presses(self):
        with gzip.open(self.data / COFFEE, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def totals(self):
        return {
            "taxi:pickups": len(self.columns(TAXI, "pickup_location_id")),
            "retail:lines": len(self.columns(RETAIL, "InvoiceNo")),
            "retail:invoices": len(self.values(RETAIL, "InvoiceNo")),
            "retail:distinct_lines": len(set(self.columns(RETAIL))),
            "coffee:presses": len(self.presses()),
            "chicago:trips": len(self.columns(CHICAGO, "company")),
            "quakes:events": len(self.columns(QUAKES, "Source")),
        }


# ---- the questions: each answers with the rows of truth.json -----------------------------------------------

QUESTIONS = {}


def question(name):
    def remember(ask):
        QUESTIONS[name] = ask
        return ask
    return remember


def with_missing(door, template, missing_key, values, when):
    """[(value, count)] of values that occur, in order, the missing value (None) last."""
    pairs = sorted(door.by_value(template, values, when).items())
    return [(value, n) for value, n in pairs + [(None, door.count(missing_key, when))] if n]


def taxi_range_questions(name, when):
    @question(f"taxi_dev.{name}.vendor")
    def vendors(door, files):
        return with_missing(door, "taxi:vendor:{}", "taxi:vendor_missing", files.values(TAXI, "vendor_id"), when)

    @question(f"taxi_dev.{name}.zone")
    def zones(door, files):
        total = door.count("taxi:pickups", when)
        counts = door.by_value("taxi:zone:{}", taxi_zones(files), when)
        ordered = sorted(((zone, n) for zone, n in counts.items() if n), key=lambda pair: (-pair[1], pair[0]))
        return [(zone, n, total) for zone, n in ordered[:60]]


for range_name, range_span in TAXI_RANGES.items():
    taxi_range_questions(range_name, range_span)


def taxi_zones(files):
    return sorted(int(zone) for zone in files.values(TAXI, "pickup_location_id"))


@question("taxi_dev.series15")
def taxi_series(door, _files):
    points = door.series("taxi:pickups", TAXI_RANGES["range2"], "quarter")
    return [(bucket_text(time_s), n) for time_s, n in sorted(points.items())]


# The one stray row lies in December 2008; taxi_dev.month shows that no other month holds an event.
TAXI_MONTHS = [*months("2008-12", "2008-12"), *months("2018-01", "2019-12")]


@question("taxi_dev.top_bucket")
def taxi_top_bucket(door, _files):
    points = monthly_series(door, "taxi:pickups", "quarter", TAXI_MONTHS)
    ordered = sorted(points.items(), key=lambda point: (-point[1], point[0]))
    return [(bucket_text(time_s), n) for time_s, n in ordered[:10]]


def monthly_series(door, key, granularity, which):
    points = {}
    for _, start, end in which:
        points |= door.series(key, (start, end), granularity)
    return points


@question("taxi_dev.top_zone_bucket")
def taxi_top_zone_bucket(door, files):
    """Down from days to hours to quarter hours, following only what holds at least 4: nothing is negative."""
    fewest = 4
    found = [(f"taxi:zone:{zone}", time_s, 86400)
             for zone in taxi_zones(files)
             for when in (span("2008-12-01", "2009-01-01"), TAXI_RANGES["range4"])
             for time_s, n in door.series(f"taxi:zone:{zone}", when, "day").items() if n >= fewest]
    for width_s in (3600, 900):
        inner = [(key, start, start + width_s)
                 for key, time_s, outer_s in found for start in range(time_s, time_s + outer_s, width_s)]
        counts = door.counts(inner)
        found = [(key, start, width_s) for (key, start, _), n in zip(inner, counts) if n >= fewest]
        filled = [(-n, start, int(key.rsplit(":", 1)[1])) for (key, start, _), n in zip(inner, counts) if n >= fewest]
    return [(zone, bucket_text(start), -n) for n, start, zone in sorted(filled)[:10]]


@question("taxi_dev.payment")
def taxi_payment(door, files):
    names = [(value, "taxi:{}payment:" + value) for value in files.values(TAXI, "payment_type")]
    rows = []
    for value, name in [*names, (None, "taxi:{}payment_missing")]:
        keys = [name.format(part) for part in
                ("", "total_cents:", "fare_cents:", "tip_cents:", "refunds:", "refund_cents:")]
        n, total, fare, tip, refunds, refunded = door.counts([(key, *ALL) for key in keys])
        rows.append((value, n, money(total, 2), money(fare, 2), money(tip, 2), refunds,
                     money(refunded, 2) if refunds else None))
    return rows


@question("taxi_dev.month")
def taxi_month(door, _files):
    every = list(months("2008-01", "2019-12"))
    counts = door.counts([("taxi:pickups", start, end) for _, start, end in every])
    return [(name, n) for (name, _, _), n in zip(every, counts) if n]


@question("taxi_dev.hour_of_day")
def taxi_hour_of_day(door, _files):
    hours = collections.Counter()
    for time_s, n in monthly_series(door, "taxi:pickups", "hour", TAXI_MONTHS).items():
        hours[time_s // 3600 % 24] += n
    return sorted(hours.items())


@question("retail.global")
def retail_global(door, files):
    keys = ["lines", "invoices", "cancelled_invoices", "lines_without_customer", "units", "net_thousandths",
            "gross_thousandths", "cancelled_thousandths"]
    lines, invoices, cancels, without, units, *amounts = door.counts([(f"retail:{key}", *ALL) for key in keys])
    return [(lines, invoices, cancels, active_customers(door, files, ALL), without, units,
             *(money(amount, 3) for amount in amounts))]


def active_customers(door, files, when):
    """How many customers have a line in the range: keys that do not count 0."""
    counts = door.by_value("retail:lines:customer:{}", files.values(RETAIL, "CustomerID"), when)
    return sum(n > 0 for n in counts.values())


def customer_rows(door, files):
    customers = files.values(RETAIL, "CustomerID")
    parts = [door.by_value(f"retail:{part}:customer:{{}}", customers, ALL).values() for part in
             ("sales_invoices", "cancelled_invoices", "lines", "gross_thousandths", "cancelled_thousandths",
              "net_thousandths")]
    return list(zip(customers, *parts))


def customer_row(row):
    return (*row[:4], *(money(amount, 3) for amount in row[4:]))


@question("retail.customer_top")
def retail_customer_top(door, files):
    ordered = sorted(customer_rows(door, files), key=lambda row: (-row[6], row[0]))
    return [customer_row(row) for row in ordered[:30]]


@question("retail.customer_sample")
def retail_customer_sample(door, files):
    return [(*customer_row(row), k) for k, row in enumerate(customer_rows(door, files), start=1) if k % 200 == 0]


@question("retail.country")
def retail_country(door, files):
    countries = files.values(RETAIL, "Country")
    net = door.by_value("retail:net_thousandths:country:{}", countries, ALL)
    invoices = door.by_value("retail:sales_invoices:country:{}", countries, ALL)
    ordered = sorted(countries, key=lambda country: -net[country])
    return [(country, invoices[country], money(net[country], 3)) for country in ordered[:15]]


@question("retail.series15")
def retail_series(door, _files):
    day = span("2011-12-05", "2011-12-06")
    lines, invoices, net = (door.series(f"retail:{part}", day, "quarter")
                            for part in ("lines", "invoices", "net_thousandths"))
    return [(bucket_text(time_s), lines[time_s], invoices.get(time_s, 0), money(net.get(time_s, 0), 3))
            for time_s in sorted(lines)]


@question("retail.range_country")
def retail_range_country(door, files):
    when = span("2011-11-14 08:00", "2011-11-14 12:30")
    countries = files.values(RETAIL, "Country")
    lines = door.by_value("retail:lines:country:{}", countries, when)
    invoices = door.by_value("retail:invoices:country:{}", countries, when)
    ordered = sorted((country for country in countries if lines[country]), key=lambda c: (-lines[c], c))
    return [(country, lines[country], invoices[country]) for country in ordered]


@question("retail.month")
def retail_month(door, files):
    rows = []
    for name, *when in months("2010-12", "2011-12"):
        invoices, net = door.counts([("retail:sales_invoices", *when), ("retail:net_thousandths", *when)])
        rows.append((name, invoices, active_customers(door, files, when), money(net, 3)))
    return rows


@question("retail.same_day_2")
def retail_same_day(door, files):
    pairs, customers, most = 0, 0, 0
    for customer in files.values(RETAIL, "CustomerID"):
        days = door.series(f"retail:sales_invoices:customer:{escaped(customer)}", SHOP, "day").values()
        twice = sum(n >= 2 for n in days)
        pairs, customers, most = pairs + twice, customers + (twice > 0), max([most, *days])
    return [(pairs, customers, most)]


@question("retail.every_10th")
def retail_every_10th(door, files):
    invoices = door.by_value("retail:sales_invoices:customer:{}", files.values(RETAIL, "CustomerID"), ALL)
    rewards = sum(n // 10 for n in invoices.values())
    ordered = sorted(invoices.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(customer, n, n // 10, rewards) for customer, n in ordered[:10]]


@question("retail.product_top")
def retail_product_top(door, files):
    products = files.values(RETAIL, "StockCode")
    units = door.by_value("retail:units_sold:product:{}", products, ALL)
    lines = door.by_value("retail:lines_sold:product:{}", products, ALL)
    ordered = sorted(products, key=lambda product: (-units[product], product))
    return [(product, units[product], lines[product]) for product in ordered[:15]]


@question("retail.duplicates")
def retail_duplicates(door, _files):
    return [(door.count("retail:lines", ALL) - door.count("retail:distinct_lines", ALL),)]


def coffee_values(files, column):
    return sorted({press[column] for press in files.presses()})


@question("coffee.beverage")
def coffee_beverage(door, files):
    beverages = coffee_values(files, "beverage")
    presses = door.by_value("coffee:beverage:{}", beverages, ALL)
    cups = door.by_value("coffee:quantity:beverage:{}", beverages, ALL)
    return [(beverage, presses[beverage], cups[beverage])
            for beverage in sorted(beverages, key=lambda b: (-presses[b], b))]


@question("coffee.beverage_side")
def coffee_beverage_side(door, files):
    triples = [(station, beverage, side) for station in coffee_values(files, "entityID")
               for beverage in coffee_values(files, "beverage") for side in coffee_values(files, "beverageSide")]
    keys = ["coffee:station_beverage_side:" + ":".join(map(escaped, triple)) for triple in triples]
    counts = door.counts([(key, *ALL) for key in keys])
    return [(*triple, n) for triple, n in zip(triples, counts) if n]


@question("coffee.series15")
def coffee_series(door, _files):
    three_days = span("2018-02-27", "2018-03-03")
    presses = door.series("coffee:presses", three_days, "quarter")
    lattes = door.series("coffee:beverage:Latte", three_days, "quarter")
    return [(bucket_text(time_s), n, lattes.get(time_s, 0)) for time_s, n in sorted(presses.items())]


@question("coffee.range")
def coffee_range(door, files):
    when = span("2018-02-28 23:00", "2018-03-01 00:15")
    counts = door.by_value("coffee:beverage:{}", coffee_values(files, "beverage"), when)
    return [(beverage, n) for beverage, n in counts.items() if n]


@question("chicago.company")
def chicago_company(door, files):
    names = [*(f"company:{escaped(company)}" for company in files.values(CHICAGO, "company")), "company_missing"]
    return chicago_rows(door, [*files.values(CHICAGO, "company"), None], names)[:15]


@question("chicago.payment")
def chicago_payment(door, files):
    payments = files.values(CHICAGO, "payment_type")
    return chicago_rows(door, payments, [f"payment:{escaped(payment)}" for payment in payments])


def chicago_rows(door, values, names):
    """(value, trips, fares, tips), most trips first, then by value."""
    trips, fares, tips = (door.counts([(f"chicago:{part}{name}", *ALL) for name in names])
                          for part in ("", "fare_cents:", "tip_cents:"))
    ordered = sorted(zip(values, trips, fares, tips), key=lambda row: (-row[1], row[0] is None, row[0] or ""))
    return [(value, n, money(fare, 2), money(tip, 2)) for value, n, fare, tip in ordered]


@question("chicago.area_year")
def chicago_area(door, files):
    areas = [int(area) for area in files.values(CHICAGO, "pickup_community_area")]
    counts = door.by_value("chicago:area:{}", areas, span("2014-01-01", "2015-01-01"))
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:20]


@question("chicago.boundary")
def chicago_boundary(door, _files):
    """Every trip lies on an edge, so a closed or an open range is this one moved by a quarter hour at an end."""
    start, end = span("2013-10-18 18:45", "2013-10-18 19:45")
    ranges = [(start, end), (start, end + 900), (start + 900, end)]
    return [tuple(door.counts([("chicago:trips", *each) for each in ranges]))]


@question("chicago.boundary_15")
def chicago_boundary_15(door, _files):
    points = monthly_series(door, "chicago:trips", "quarter", months("2013-01", "2016-12"))
    full = sorted((-n, time_s) for time_s, n in points.items() if n >= 3)
    return [(bucket_text(time_s), -n) for n, time_s in full[:25]]


@question("quakes.source")
def quakes_source(door, files):
    networks = files.values(QUAKES, "Source")
    events = door.by_value("quakes:network:{}", networks, ALL)
    strong = door.by_value("quakes:magnitude_4:network:{}", networks, ALL)
    return [(network, events[network], strong[network])
            for network in sorted(networks, key=lambda n: (-events[n], n))[:15]]


@question("quakes.month")
def quakes_month(door, _files):
    rows = []
    for name, *when in months("2016-01", "2016-12"):
        events, strong = door.counts([("quakes:events", *when), ("quakes:magnitude_4", *when)])
        rows += [(name, events, strong)] if events else []
    return rows


@question("quakes.range")
def quakes_range(door, files):
    when = span("2016-06-10 08:00", "2016-06-10 10:00")
    return sorted((bucket_text(time_s), network, n)
                  for network in files.values(QUAKES, "Source")
                  for time_s, n in door.series(f"quakes:network:{escaped(network)}", when, "quarter").items())
