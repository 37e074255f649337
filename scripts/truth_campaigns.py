"""The questions of truth.json that counts cannot answer, asked as campaigns over the rows of the files.

Each question is a backtest: the invoices of the shop, or the presses of the buttons, are sent in the order
of their times as lines of JSON, and the server says which of them trigger a step. It keeps nothing.
"""

import collections
import csv
import functools
import gzip
import json
from datetime import datetime, timedelta
from decimal import Decimal

RETAIL = "online_retail.csv.gz"
COFFEE = "elasticoffee_2018.jsonl.gz"
STEPS_MAX = 16

QUESTIONS = {}


def question(name):
    def remember(ask):
        QUESTIONS[name] = ask
        return ask
    return remember


# ---- the rows ------------------------------------------------------------------------------------------------

Invoice = collections.namedtuple("Invoice", "number time customer is_cancelled total")


class Files:
    """The events of each question, in the order in which a campaign is to see them."""

    def __init__(self, data):
        self.data = data

    @functools.cached_property
    def invoices(self):
        """One event for each invoice, by time and number."""
        rows = {}
        with gzip.open(self.data / RETAIL, "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                amount = Decimal(row["UnitPrice"]) * int(row["Quantity"])
                rows.setdefault(row["InvoiceNo"], []).append((row["InvoiceDate"], row["CustomerID"], amount))
        invoices = []
        for number, found in rows.items():
            customers = [customer for _, customer, _ in found if customer]
            invoices.append(Invoice(number, min(time for time, _, _ in found), min(customers, default=None),
                                    number.startswith("C"), sum(amount for _, _, amount in found)))
        return sorted(invoices, key=lambda invoice: (invoice.time, invoice.number))

    @functools.cached_property
    def presses(self):
        """The presses of the buttons, by time and id."""
        with gzip.open(self.data / COFFEE, "rt", encoding="utf-8") as lines:
            presses = [json.loads(line) for line in lines]
        return sorted(presses, key=lambda press: (press["@timestamp"], int(press["_id"])))

    def sales(self):
        return [invoice for invoice in self.invoices if invoice.customer and not invoice.is_cancelled]


def event(kind, number, time, data):
    return (f'{{"specversion":"1.0","source":"truth","type":"{kind}","id":{json.dumps(number)},'
            f'"time":"{time.replace(" ", "T")}Z","data":{data}}}')


def invoice_event(invoice):
    customer = "" if invoice.customer is None else f'"customer":{json.dumps(invoice.customer)},'
    # Written out, since a float would lose digits.
    data = f'{{{customer}"cancelled":{json.dumps(invoice.is_cancelled)},"total":{invoice.total:f}}}'
    return event("retail.invoice", invoice.number, invoice.time, data)


def press_event(press):
    time = datetime.fromisoformat(press["@timestamp"].replace("Z", "+00:00")).strftime("%Y-%m-%d %H:%M:%S")
    return event("coffee.press", press["_id"], time, json.dumps({"beverage": press["beverage"]}))


# ---- the campaigns -------------------------------------------------------------------------------------------

def campaign(kind, subject, count, steps, number=1):
    """A campaign whose steps are conditions on one count: {name: (operator, number)}."""
    action = {"name": "note", "kind": "reward", "to": "truth", "reward": "R"}
    return {
        "id": number, "name": f"truth-{number}", "eventTypes": [kind], "subject": subject, "zone": "UTC",
        "state": "active", "counts": {"n": count},
        "steps": [{"name": name, "when": {"operator": operator, "lhs": "count.n", "rhs": rhs}, "actions": [action]}
                  for name, (operator, rhs) in steps.items()]}


SALES = {"operator": "eq", "lhs": "var.cancelled", "rhs": False}


def of_sales(count, steps, number=1):
    """A campaign on the invoices that are no cancellations."""
    found = campaign("retail.invoice", "data.customer", {"filter": SALES, **count}, steps, number)
    return {**found, "rule": SALES}


def levels(operator, first, last):
    return {str(level): (operator, level) for level in range(first, last + 1)}


def by_step(answer):
    return {step["step"]: step for step in answer["steps"]}


def largest(steps, first, last):
    """The largest level that anything came to."""
    return max((level for level in range(first, last + 1) if steps[str(level)]["triggers"]), default=None)


# ---- the questions: each answers with the rows of truth.json --------------------------------------------------

@question("retail.threshold_1000")
def threshold(door, files):
    """The first to spend 1,000, with what they had spent by then. A sum that falls and rises again is one."""
    count = {"window": "campaign", "value": {"field": "data.total", "scale": 1000}}
    asked = of_sales(count, {"spent": ("reaches", 1_000_000)})
    asked["limits"] = [{"step": "spent", "per": "subject", "max": 1, "period": "campaign"}]
    lines = [invoice_event(invoice) for invoice in files.invoices]
    answer = by_step(door.backtest({"campaigns": [asked], "by": ["id"]}, lines))["spent"]

    # The first ones once more, as a test: its evidence has the sums.
    tested = door.test({"campaigns": [asked]}, lines[:1000])
    sums = {decision["event"]: next(line["after"] for line in decision["evidence"]["trace"] if "after" in line)
            for decision in tested["decisions"] if decision["outcome"] == "granted"}
    triggers = [invoice for invoice in files.invoices if invoice.number in answer["by"]["id"]]
    return [(invoice.customer, invoice.number, invoice.time, f"{Decimal(sums[invoice.number]).scaleb(-3):.3f}",
             answer["triggers"]) for invoice in triggers[:15]]


@question("retail.same_day_2")
def same_day(door, files):
    """Days on which a customer comes to two invoices, such customers, and the most invoices of a day."""
    count = {"window": {"calendar": "day"}}
    asked = [of_sales(count, levels("reaches", 2, 17)), of_sales(count, levels("reaches", 18, 33), 2)]
    steps = by_step(door.backtest({"campaigns": asked}, map(invoice_event, files.invoices)))
    return [(steps["2"]["triggers"], steps["2"]["subjects"], largest(steps, 2, 33))]


@question("retail.rolling24h_3")
def rolling(door, files):
    """Invoices that are at least the third within 24 hours, such customers, and the most."""
    count = {"window": {"last": "PT24H"}}
    asked = [of_sales(count, levels("gte", 3, 18)), of_sales(count, levels("gte", 19, 33), 2)]
    steps = by_step(door.backtest({"campaigns": asked}, map(invoice_event, files.invoices)))
    return [(steps["3"]["triggers"], steps["3"]["subjects"], largest(steps, 3, 33))]


def rolling_in_order(files):
    """The same number of invoices, where those of one minute follow each other: truth.json counts them as peers."""
    times = collections.defaultdict(list)
    third = 0
    for invoice in files.sales():
        now = datetime.fromisoformat(invoice.time)
        times[invoice.customer].append(now)
        third += sum(time >= now - timedelta(hours=24) for time in times[invoice.customer]) >= 3
    return third


@question("retail.every_10th")
def every_10th(door, files):
    """Rewards for each tenth invoice, and the customers with the most invoices."""
    asked = of_sales({"window": "campaign"}, {"each": ("every", 1), "tenth": ("every", 10)})
    steps = by_step(door.backtest({"campaigns": [asked], "by": ["data.customer"]}, map(invoice_event, files.invoices)))
    rewards = steps["tenth"]["by"]["data.customer"]
    return [(customer, n, rewards.get(customer, 0), steps["tenth"]["triggers"])
            for customer, n in steps["each"]["topSubjects"][:10]]


@question("coffee.nth")
def nth(door, files):
    """The press with which each drink comes to fifty."""
    asked = campaign("coffee.press", "data.beverage", {"window": "campaign"}, {"fifty": ("reaches", 50)})
    answer = by_step(door.backtest({"campaigns": [asked], "by": ["id"]}, map(press_event, files.presses)))["fifty"]
    rows = [(press["beverage"], press["@timestamp"][:19].replace("T", " "), int(press["_id"]))
            for press in files.presses if press["_id"] in answer["by"]["id"]]
    return sorted(rows, key=lambda row: (row[1], row[0]))


def expected(name, rows, files):
    """The rows of truth.json, as they are for a stream in which events follow each other."""
    if name != "retail.rolling24h_3":
        return rows
    return [[rolling_in_order(files), *rows[0][1:]]]
