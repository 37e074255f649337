// The page: which counter is chosen, the list it is chosen from, and what happens when the address changes.
// Everything that one sees follows from the address (address.js), the counters, and what the server answers.

import { readAddress, writeAddress } from "./address.js";
import { createAnswer } from "./answer.js";
import { get, hasToken, keepToken } from "./api.js";
import { showCommand } from "./command.js";
import { byId, html, say } from "./dom.js";
import { watchSystem } from "./system.js";
import { configurationInWords, createCommand, number, sendCommand } from "./words.js";

const TOP_KEYS = 12;
const TICK_MS = 5_000;
const STATE_ORDER = ["active", "draft", "paused", "archived"];
const wide = matchMedia("(min-width: 56rem)");

let state = readAddress(location.search);
let counters = null;
let shownCounter = null;
let topKeys = [];
let keysRequest = new AbortController();
const answer = createAnswer({ change, report });

/** Changes what is shown; the step can be taken back with the browser's button unless it only refines (`replace`). */
function change(changes, replace = false) {
  // The counter that a wide page shows by itself is named as well, or the link would depend on the order of the list.
  state = { ...state, counter: shownCounter?.id ?? null, ...changes };
  history[replace ? "replaceState" : "pushState"](null, "", writeAddress(state));
  show();
}

/** Says what went wrong; an answer of 401 opens the field for a token instead. */
function report(problem) {
  if (problem.name === "AbortError") return;
  if (problem.status === 401 || (problem.status === 403 && !hasToken())) askForToken(problem);
  else say(byId("notice"), problem.message);
}

function askForToken(problem) {
  byId("token").hidden = false;
  byId("layout").hidden = true;
  byId("empty").hidden = true;
  say(byId("notice"), "");
  if (hasToken()) byId("token-why").textContent = `The token was not accepted: ${problem.message}`;
  keepToken("");
  byId("token-value").focus();
}

async function loadCounters() {
  try {
    const body = await get("/v1/counters");
    counters = [...body.counters].sort((one, other) =>
      STATE_ORDER.indexOf(one.state) - STATE_ORDER.indexOf(other.state) || one.id - other.id);
    say(byId("notice"), "");
    byId("token").hidden = true;
    show();
  } catch (problem) {
    report(problem);
  }
}

function matches(counter, search) {
  const text = [counter.name, counter.template, counter.eventType, counter.state, counter.owner, counter.id].join(" ").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function counterItem(counter) {
  const chosen = counter.id === shownCounter?.id;
  const address = writeAddress({ ...state, counter: counter.id, key: null, range: "latest", granularity: null });
  const choose = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    change({ counter: counter.id, key: null, range: "latest", granularity: null });
    if (!wide.matches) scrollTo(0, 0);
  };
  const facts = [counter.eventType, counter.owner].filter((fact) => fact).join(" · ");
  return html("li", {}, html(
    "a", { href: address, class: "counter", "aria-current": chosen ? "true" : false, onclick: choose },
    html("span", { class: "counter-line" }, html("span", { class: "counter-name" }, counter.name), stateBadge(counter.state)),
    html("span", { class: "counter-template" }, counter.template),
    html("span", { class: "counter-facts" }, facts),
  ));
}

/** Active is the ordinary case and needs no badge in a list. */
function stateBadge(name) {
  return name === "active" || name === undefined ? "" : html("span", { class: "state", "data-state": name }, name);
}

function showList() {
  const shown = counters.filter((counter) => matches(counter, state.search));
  byId("counter-list").replaceChildren(...shown.map(counterItem));
  byId("counters-tally").textContent = shown.length === counters.length ? number(counters.length) : `${shown.length} of ${counters.length}`;
  byId("no-match").hidden = shown.length > 0;
  if (byId("search").value !== state.search) byId("search").value = state.search;
}

/** The template with its fields set apart from its literal text. */
function templateParts(template) {
  return template.split(/(\{[^}]*\})/).map((part) => (part.startsWith("{") ? html("b", {}, part) : part));
}

function showCounter(counter) {
  byId("counter-name").textContent = counter.name;
  byId("counter-template").replaceChildren(...templateParts(counter.template));
  say(byId("counter-description"), counter.description ?? "");
  byId("counter-state").textContent = counter.state ?? "active";
  byId("counter-state").dataset.state = counter.state ?? "active";
  const facts = configurationInWords(counter).flatMap(([label, text]) => [html("dt", {}, label), html("dd", {}, text)]);
  byId("configuration").replaceChildren(...facts);
}

function whyNoKeys({ state: counterState, eventType }) {
  if (counterState === "draft") return "No keys yet: a draft counts nothing until it is made active.";
  return `No keys yet. They appear with the first ${eventType} event that the counter accepts.`;
}

async function loadKeys(counter) {
  keysRequest.abort();
  keysRequest = new AbortController();
  topKeys = [];
  byId("keys").replaceChildren();
  say(byId("keys-note"), "Asking…");
  try {
    const body = await get(`/v1/counters/${counter.id}/keys`, { limit: TOP_KEYS }, keysRequest.signal);
    topKeys = body.keys;
    say(byId("keys-note"), topKeys.length > 0 ? "" : whyNoKeys(counter));
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (problem.status === 401) report(problem);
    else say(byId("keys-note"), problem.message);
  }
  byId("key-choices").replaceChildren(...topKeys.map(({ key }) => html("option", { value: key })));
  showKey();
}

/** How many characters the keys of a template share, so that the part in which they differ can stand out. */
function literalPrefix(template) {
  const brace = template.indexOf("{");
  return brace < 0 ? 0 : brace;
}

function showKeys(chosenKey) {
  const most = topKeys.reduce((largest, { count }) => Math.max(largest, Math.abs(count)), 1);
  const prefix = literalPrefix(shownCounter.template);
  byId("keys").replaceChildren(...topKeys.map(({ key, count }) => {
    const bar = html("span", { class: "key-bar", "aria-hidden": "true" });
    bar.style.setProperty("width", `${(Math.abs(count) / most) * 100}%`);
    return html("li", {}, html(
      "button", { type: "button", class: "key", title: key, "aria-pressed": String(key === chosenKey), onclick: () => change({ key }) },
      bar,
      html("span", { class: "key-text" }, html("span", { class: "key-prefix" }, key.slice(0, prefix)), key.slice(prefix)),
      html("span", { class: "key-count" }, number(count)),
    ));
  }));
}

/** The key that is shown: the address's, or the largest. */
function showKey() {
  const key = state.key ?? topKeys[0]?.key ?? null;
  showKeys(key);
  answer.show(state, shownCounter, key);
}

function show() {
  if (counters === null) return;
  byId("empty").hidden = counters.length > 0;
  byId("layout").hidden = counters.length === 0;
  if (counters.length === 0) return showEmpty();
  let counter = counters.find(({ id }) => id === state.counter) ?? null;
  const missing = state.counter !== null && counter === null;
  say(byId("notice"), missing ? `There is no counter ${state.counter}. Choose one from the list.` : "");
  // A wide page has room for a first counter beside the list; a narrow one shows the list first.
  if (counter === null && !missing && wide.matches) counter = counters[0];
  const changed = counter?.id !== shownCounter?.id;
  shownCounter = counter;
  showList();
  byId("layout").classList.toggle("chosen", counter !== null);
  byId("detail").hidden = counter === null;
  document.title = counter === null ? "raingauge" : `${counter.name} · raingauge`;
  if (counter === null) return answer.forget();
  if (!changed) return showKey();
  showCounter(counter);
  answer.forget();
  loadKeys(counter);
}

function showEmpty() {
  showCommand(byId("create-command"), createCommand(location.origin, hasToken()));
  showCommand(byId("send-command"), sendCommand(location.origin, hasToken(), Math.floor(Date.now() / 1000)));
}

function listen() {
  addEventListener("popstate", () => {
    state = readAddress(location.search);
    show();
  });
  wide.addEventListener("change", show);
  byId("search").addEventListener("input", (event) => change({ search: event.target.value }, true));
  byId("back").addEventListener("click", (event) => {
    event.preventDefault();
    change({ counter: null, key: null });
  });
  byId("token").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(byId("token-value").value.trim());
    byId("token-value").value = "";
    loadCounters();
  });
}

listen();
loadCounters();
watchSystem(TICK_MS, () => {
  // While there is nothing to show, somebody is probably following the instructions of the empty page.
  if (byId("token").hidden && (counters === null || counters.length === 0)) loadCounters();
});
