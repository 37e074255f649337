// What the page shows is kept in its address, so that a link shows the same to somebody else.

import { GRANULARITIES, isZone, ROLLING_DAYS } from "./time.js";

/** What an address without a query means. `granularity` null lets the length of the range decide. */
const DEFAULTS = {
  counter: null, key: null, range: "latest", from_s: null, to_s: null, granularity: null, zone: "UTC", table: false, search: "",
};

function wholeNumber(text) {
  return text !== null && /^\d{1,12}$/.test(text) ? Number(text) : null;
}

/** Reads the query string; whatever is not understood falls back to its default. */
export function readAddress(search) {
  const query = new URLSearchParams(search);
  const from_s = wholeNumber(query.get("from"));
  const to_s = wholeNumber(query.get("to"));
  const range = query.get("range");
  const granularity = query.get("by");
  const zone = query.get("zone");
  const state = { ...DEFAULTS, counter: wholeNumber(query.get("counter")), key: query.get("key") };
  if (range in ROLLING_DAYS) state.range = range;
  if (range === "custom" && from_s !== null && to_s !== null && from_s < to_s) Object.assign(state, { range, from_s, to_s });
  if (GRANULARITIES.includes(granularity)) state.granularity = granularity;
  if (zone !== null && isZone(zone)) state.zone = zone;
  state.table = query.get("view") === "table";
  state.search = query.get("search") ?? "";
  return state;
}

/** Writes the query string, with only what differs from the defaults. */
export function writeAddress(state) {
  const query = new URLSearchParams();
  if (state.counter !== null) query.set("counter", state.counter);
  if (state.key !== null) query.set("key", state.key);
  if (state.range !== DEFAULTS.range) query.set("range", state.range);
  if (state.range === "custom") {
    query.set("from", state.from_s);
    query.set("to", state.to_s);
  }
  if (state.granularity !== null) query.set("by", state.granularity);
  if (state.zone !== DEFAULTS.zone) query.set("zone", state.zone);
  if (state.table) query.set("view", "table");
  if (state.search !== "") query.set("search", state.search);
  const text = query.toString();
  return text === "" ? location.pathname : `?${text}`;
}
