// The one place that talks to the server: it adds the token, and turns every failure into a sentence.

const TOKEN_NAME = "raingauge.token";

/** What went wrong, in words that can be shown. `status` is 0 when the server was not reached at all. */
export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export function hasToken() {
  return sessionStorage.getItem(TOKEN_NAME) !== null;
}

/** The token lives as long as the browser's tab; an empty one forgets it. */
export function keepToken(token) {
  if (token === "") sessionStorage.removeItem(TOKEN_NAME);
  else sessionStorage.setItem(TOKEN_NAME, token);
}

async function request(path, parameters, signal) {
  const query = new URLSearchParams(parameters).toString();
  const token = sessionStorage.getItem(TOKEN_NAME);
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  try {
    return await fetch(query === "" ? path : `${path}?${query}`, { headers, signal });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Problem(0, "unreachable", "The server does not answer. Is raingauge still running?");
  }
}

async function problemOf(response) {
  const fallback = `The server answered ${response.status} ${response.statusText}`.trim() + ".";
  try {
    const body = await response.json();
    // A single count answers with the error of its one item, everything else with problem details.
    const { code, detail, title } = body.error ?? body;
    return new Problem(response.status, code ?? "", detail ?? title ?? fallback);
  } catch {
    return new Problem(response.status, "", fallback);
  }
}

/** Asks for JSON; throws a Problem for any answer that is not a success. */
export async function get(path, parameters = {}, signal = undefined) {
  const response = await request(path, parameters, signal);
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

/** Asks for text and also gives the status, for the two paths whose status is the answer. */
export async function getText(path) {
  const response = await request(path, {}, undefined);
  return { status: response.status, text: await response.text() };
}

/** Adds up every sample of one metric in Prometheus text, or null when the metric is absent. */
export function metricTotal(text, name) {
  let total = null;
  for (const line of text.split("\n")) {
    if (!line.startsWith(name)) continue;
    const sample = /^(?:\{.*\})?\s+(\S+)/.exec(line.slice(name.length));
    const value = sample === null ? NaN : Number(sample[1]);
    if (Number.isFinite(value)) total = (total ?? 0) + value;
  }
  return total;
}
