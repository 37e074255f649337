// The line in the head of the page: is the server ready, how much has it counted, is it behind.

import { getText, metricTotal } from "./api.js";
import { byId, say } from "./dom.js";
import { number } from "./words.js";

async function readiness() {
  try {
    const { status } = await getText("/readyz");
    return status === 200 ? ["yes", "Ready"] : ["no", "Not ready yet"];
  } catch {
    return ["no", "Not reachable"];
  }
}

/** The metrics as text; empty when they are closed to this visitor or absent, and then they are simply not shown. */
async function metrics() {
  try {
    const { status, text } = await getText("/metrics");
    return status === 200 ? text : "";
  } catch {
    return "";
  }
}

async function look() {
  const [[ready, words], text] = await Promise.all([readiness(), metrics()]);
  byId("system-ready").dataset.ready = ready;
  byId("system-ready").textContent = words;
  const events = metricTotal(text, "raingauge_events_accepted_total");
  const lag = metricTotal(text, "raingauge_log_lag_events");
  say(byId("system-events"), events === null ? "" : `${number(events)} ${events === 1 ? "event" : "events"} counted`);
  say(byId("system-lag"), lag === null ? "" : lag === 0 ? "nothing waiting" : `${number(lag)} waiting`);
}

/** Looks now and then at every tick, but not while the page is in the background. */
export function watchSystem(tick_ms, onTick) {
  look();
  setInterval(() => {
    if (document.hidden) return;
    look();
    onTick();
  }, tick_ms);
}
