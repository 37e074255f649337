// The panel that answers for one key: how many in a range, the chart, its table, and the command that asks for it.

import { get, hasToken } from "./api.js";
import { createChart, zoomOf } from "./chart.js";
import { showCommand } from "./command.js";
import { byId, html, say } from "./dom.js";
import {
  alignedRange, browserZone, bucketInWords, bucketsOf, DAY_S, fits, fromApi, fromInput, granularityFor, latestStretch,
  nextBucket, rangeInWords, ROLLING_DAYS, rollingRange, startOfBucket, toInput,
} from "./time.js";
import { countCommand, number } from "./words.js";

const ZONES = [
  "UTC", "America/Los_Angeles", "America/New_York", "America/Sao_Paulo", "Europe/London", "Europe/Berlin", "Africa/Nairobi",
  "Asia/Kolkata", "Asia/Singapore", "Asia/Tokyo", "Australia/Sydney",
];

/** Where the latest data are looked for: the last ten years first, then the seventeen before them. */
const LATEST_DAYS = 3_650;
const EARLIER_DAYS = 6_200;

const TABLE_ROWS_MAX = 1_000;

const FINEST_WORDS = { quarter: "quarter hour", hour: "hour", day: "day" };

const now = () => Math.floor(Date.now() / 1000);

/** The series of a key as {time_s, count}. */
async function series(key, range, granularity, zone, signal) {
  const parameters = { key, fromTime: range.from_s, toTime: range.to_s, granularity, timezone: zone };
  const body = await get("/v1/series", parameters, signal);
  return body.points.map(({ time, count }) => ({ time_s: fromApi(time), count }));
}

async function countOf(key, range, signal) {
  const body = await get("/v1/counts", { key, fromTime: range.from_s, toTime: range.to_s }, signal);
  if (body.error) throw new Error(body.error.detail);
  return body.count;
}

/** Finds the range in which the key has data lately, or null when it has none at all. */
async function latestRange(key, retentionDays, signal) {
  const kept = retentionDays?.day ?? Infinity;
  const to_s = nextBucket(startOfBucket(now(), "day", "UTC"), "day", "UTC");
  const middle_s = to_s - Math.min(LATEST_DAYS, kept) * DAY_S;
  const found = latestStretch(await series(key, { from_s: middle_s, to_s }, "day", "UTC", signal));
  if (found !== null || kept <= LATEST_DAYS) return found;
  const earlier = { from_s: middle_s - Math.min(EARLIER_DAYS, kept - LATEST_DAYS) * DAY_S, to_s: middle_s };
  return latestStretch(await series(key, earlier, "day", "UTC", signal));
}

/** Puts points into the buckets of the range; a bucket without a point counts 0, whether the server sent zeros or not. */
function fillBuckets(buckets, points) {
  let index = 0;
  for (const bucket of buckets) {
    bucket.count = 0;
    while (index < points.length && points[index].time_s < bucket.end_s) {
      bucket.count += points[index].count;
      index += 1;
    }
  }
  return buckets;
}

export function createAnswer({ change, report }) {
  let state = null;
  let counter = null;
  let key = null;
  let shown = null;
  let request = new AbortController();
  const chart = createChart(byId("chart"), (bucket) => {
    const zoom = zoomOf(bucket, shown.granularity);
    if (zoom !== null) change({ range: "custom", ...zoom });
  });

  /** The range and the granularity that the address means at this moment. */
  async function resolve(signal) {
    const { zone } = state;
    let range = { from_s: state.from_s, to_s: state.to_s };
    if (state.range === "latest") {
      const latest = await latestRange(key, counter.retentionDays, signal);
      if (latest === null) return null;
      range = alignedRange(latest, "day", zone);
    }
    const days = ROLLING_DAYS[state.range];
    const length_s = days === undefined ? range.to_s - range.from_s : days * DAY_S;
    const age_s = days === undefined ? now() - range.from_s : length_s;
    const wanted = state.granularity !== null && fits(length_s, state.granularity) ? state.granularity : null;
    const granularity = wanted ?? granularityFor(length_s, age_s, counter.retentionDays);
    if (days !== undefined) range = rollingRange(days, now(), granularity, zone);
    return { range, granularity, length_s };
  }

  async function load() {
    request.abort();
    request = new AbortController();
    const { signal } = request;
    byId("chart").classList.add("loading");
    try {
      const resolved = await resolve(signal);
      if (resolved === null) return showNothing(`Nothing has been counted under ${key} yet.`);
      const { range, granularity } = resolved;
      showChoices(resolved);
      const [total, points] = await Promise.all([
        countOf(key, range, signal), series(key, range, granularity, state.zone, signal),
      ]);
      const buckets = fillBuckets(bucketsOf(range, granularity, state.zone), points);
      shown = { range, granularity, zone: state.zone, total, buckets };
      showAnswer();
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (problem.status === 401) report(problem);
      showNothing("", problem.message);
    } finally {
      if (!signal.aborted) byId("chart").classList.remove("loading");
    }
  }

  function showRangeChoice() {
    for (const input of byId("range").querySelectorAll("input")) input.checked = input.value === state?.range;
    byId("custom").hidden = state?.range !== "custom";
  }

  /** Sets every control to what is about to be shown, so that a range that is refused can be corrected. */
  function showChoices({ range, granularity, length_s }) {
    showRangeChoice();
    for (const input of byId("granularity").querySelectorAll("input")) {
      input.checked = input.value === granularity;
      input.disabled = !fits(length_s, input.value);
    }
    byId("custom-from").value = toInput(range.from_s, state.zone);
    byId("custom-to").value = toInput(range.to_s, state.zone);
    say(byId("custom-problem"), "");
    showCommand(byId("count-command"), countCommand(location.origin, key, range, hasToken()));
  }

  function showAnswer() {
    const { range, granularity, zone, total, buckets } = shown;
    const when = rangeInWords(range, zone);
    const most = buckets.reduce((best, bucket) => (bucket.count > best.count ? bucket : best), buckets[0]);
    const peak = most.count > 0 ? `most in one ${FINEST_WORDS[granularity]}: ${number(most.count)}, ${bucketInWords(most, granularity, zone)}` : "";
    say(byId("answer-problem"), "");
    byId("answer").classList.remove("unanswered");
    byId("total").textContent = number(total);
    byId("total-words").replaceChildren(
      html("span", { class: "total-when" }, `${when} · ${zone}`),
      html("span", { class: "quiet" }, peak),
    );
    const bars = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
    const note = bars === total || state.range !== "custom" ? "" :
      `The bars add up to ${number(bars)}, because the first and the last of them reach past the range.`;
    say(byId("chart-note"), note);
    chart.show({ ...shown, title: `${key} by ${FINEST_WORDS[granularity]}, ${when}`, words: `${number(total)} in all. ${peak}` });
    byId("chart").classList.toggle("can-zoom", granularity !== "quarter");
    byId("table-toggle").hidden = false;
    showTable();
  }

  function showNothing(words, problem = "") {
    shown = null;
    chart.clear();
    byId("answer").classList.add("unanswered");
    byId("total").textContent = "";
    byId("total-words").textContent = words;
    say(byId("answer-problem"), problem);
    say(byId("chart-note"), "");
    byId("table-toggle").hidden = true;
    showTable();
    showRangeChoice();
  }

  function showTable() {
    const open = state?.table === true && shown !== null;
    byId("table").hidden = !open;
    byId("table-toggle").setAttribute("aria-expanded", String(open));
    byId("table-toggle").textContent = open ? "Hide the table" : "Show as a table";
    if (!open) return byId("table").replaceChildren();
    const { buckets, granularity, zone } = shown;
    const filled = buckets.filter((bucket) => bucket.count !== 0);
    const rows = filled.slice(-TABLE_ROWS_MAX).reverse().map((bucket) => html(
      "tr", {}, html("th", { scope: "row" }, bucketInWords(bucket, granularity, zone)), html("td", {}, number(bucket.count)),
    ));
    const words = filled.length > TABLE_ROWS_MAX ? `The latest ${number(TABLE_ROWS_MAX)} of ${number(filled.length)} bars that are not 0` : "Bars that are not 0, latest first";
    byId("table").replaceChildren(html(
      "table", {}, html("caption", {}, words),
      html("thead", {}, html("tr", {}, html("th", { scope: "col" }, `Time, ${zone}`), html("th", { scope: "col" }, "Count"))),
      html("tbody", {}, ...rows),
    ));
  }

  function showZones() {
    const zones = [...new Set([...ZONES, browserZone(), state.zone])];
    byId("zone").replaceChildren(...zones.map((zone) => html(
      "option", { value: zone, selected: zone === state.zone },
      zone === browserZone() && zone !== "UTC" ? `${zone} (this browser)` : zone,
    )));
  }

  function chooseRange(name) {
    if (name !== "custom") return change({ range: name, granularity: null });
    // A custom range starts from what is on the screen, so that one only has to correct it.
    const range = shown?.range ?? rollingRange(7, now(), "day", state.zone);
    change({ range: "custom", ...range });
  }

  function chooseCustom(event) {
    event.preventDefault();
    const from_s = fromInput(byId("custom-from").value, state.zone);
    const to_s = fromInput(byId("custom-to").value, state.zone);
    if (from_s === null || to_s === null || from_s >= to_s) say(byId("custom-problem"), "The range must end after it begins.");
    else change({ range: "custom", from_s, to_s });
  }

  byId("range").addEventListener("change", (event) => chooseRange(event.target.value));
  byId("granularity").addEventListener("change", (event) => change({ granularity: event.target.value }));
  byId("zone").addEventListener("change", (event) => change({ zone: event.target.value }));
  byId("custom").addEventListener("submit", chooseCustom);
  byId("table-toggle").addEventListener("click", () => {
    state = { ...state, table: !state.table };
    change({ table: state.table }, true);
  });
  const chooseKey = () => {
    const wanted = byId("key").value.trim();
    if (wanted !== "" && wanted !== key) change({ key: wanted });
  };
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    chooseKey();
  });
  byId("key").addEventListener("change", chooseKey);

  return {
    /** Shows a key of a counter as the address says; asks the server only when the question changed. */
    show(nextState, nextCounter, nextKey) {
      const question = (of, which) => JSON.stringify([which, of?.range, of?.from_s, of?.to_s, of?.granularity, of?.zone]);
      const same = counter === nextCounter && question(state, key) === question(nextState, nextKey) && shown !== null;
      [state, counter, key] = [nextState, nextCounter, nextKey];
      if (document.activeElement !== byId("key")) byId("key").value = key ?? "";
      byId("key").placeholder = counter.template;
      if (same) return showTable();
      showZones();
      if (key !== null) return load();
      request.abort();
      showNothing("Nothing has been counted under this counter yet.");
    },
    /** Empties the panel until the keys of another counter are known; it keeps its height, so that nothing jumps. */
    forget() {
      request.abort();
      [counter, key, shown] = [null, null, null];
      byId("key").value = "";
      byId("total").textContent = "…";
      byId("total-words").textContent = "";
      say(byId("answer-problem"), "");
      say(byId("chart-note"), "");
      byId("count-command").replaceChildren();
      chart.clear();
      showTable();
    },
  };
}
