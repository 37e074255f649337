// Configurations, numbers and commands in words.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => whole.format(value);
export const shortNumber = (value) => (Math.abs(value) < 10_000 ? whole.format(value) : short.format(value));

const COMPARISONS = { eq: "=", ne: "≠", gt: ">", gte: "≥", lt: "<", lte: "≤", prefix: "starts with" };

const literal = (value) => (typeof value === "string" ? `“${value}”` : JSON.stringify(value));

/** A filter as a sentence; a form that this page does not know is shown as it is written. */
export function filterInWords(filter, inner = false) {
  const { operator, conditions, lhs, rhs } = filter;
  if ((operator === "and" || operator === "or") && Array.isArray(conditions)) {
    const text = conditions.map((condition) => filterInWords(condition, conditions.length > 1)).join(` ${operator} `);
    return inner && conditions.length > 1 ? `(${text})` : text;
  }
  if (operator === "not" && Array.isArray(conditions)) {
    return `not (${conditions.map((condition) => filterInWords(condition, true)).join(" and ")})`;
  }
  if (operator === "exists" && lhs !== undefined) return rhs === false ? `${lhs} is absent` : `${lhs} is present`;
  if (operator === "in" && Array.isArray(rhs)) return `${lhs} is one of ${rhs.map(literal).join(", ")}`;
  if (operator in COMPARISONS && lhs !== undefined) return `${lhs} ${COMPARISONS[operator]} ${literal(rhs)}`;
  return JSON.stringify(filter);
}

function valueInWords(value) {
  if (value === undefined || value === null) return "1 for each event";
  if (typeof value !== "object") return `${value} for each event`;
  return value.scale === undefined || value.scale === 1 ? `the event’s ${value.field}` : `the event’s ${value.field} × ${value.scale}`;
}

function retentionInWords(retentionDays = {}) {
  const names = { quarter: "quarter hours", hour: "hours", day: "days" };
  const kept = Object.entries(names).map(([granularity, name]) => [name, retentionDays?.[granularity] ?? null]);
  if (kept.every(([, days]) => days === null)) return "quarter hours, hours and days for ever";
  return kept.map(([name, days]) => `${name} ${days === null ? "for ever" : `for ${number(days)} days`}`).join(", ");
}

function activeInWords({ activeFrom, activeUntil }) {
  const moment = (time) => (typeof time === "number" ? new Date(time * 1000).toISOString().replace(".000Z", "Z") : time);
  if (activeFrom && activeUntil) return `events from ${moment(activeFrom)} until ${moment(activeUntil)}`;
  if (activeFrom) return `events from ${moment(activeFrom)}`;
  return activeUntil ? `events until ${moment(activeUntil)}` : "";
}

/** The configuration as pairs of a label and a sentence, without the ones that say nothing. */
export function configurationInWords(counter) {
  return [
    ["Listens to", `${counter.eventType} events`],
    ["Only when", counter.filter ? filterInWords(counter.filter) : ""],
    ["Adds", valueInWords(counter.value)],
    ["Keeps", retentionInWords(counter.retentionDays)],
    ["Accepts", activeInWords(counter)],
    ["Owner", counter.owner ?? ""],
    ["Counter id", String(counter.id)],
  ].filter(([, text]) => text !== "");
}

/** One argument of a POSIX shell. */
function quoted(argument) {
  return `'${argument.replaceAll("'", "'\\''")}'`;
}

/** The token itself is never put into a command: people paste commands into chats. */
const authorization = (withToken) => (withToken ? ' -H "Authorization: Bearer $RAINGAUGE_TOKEN" \\\n ' : "");

export function countCommand(origin, key, range, withToken) {
  return `curl -G ${quoted(`${origin}/v1/counts`)} \\\n ${authorization(withToken)} --data-urlencode ${quoted(`key=${key}`)} \\\n  -d fromTime=${range.from_s} -d toTime=${range.to_s}`;
}

export function createCommand(origin, withToken) {
  const counter = '{"name": "count_rain_drops", "template": "rain_drops:city:{city_id}",\n       "eventType": "rain_drop"}';
  return `curl ${quoted(`${origin}/v1/counters`)} \\\n ${authorization(withToken)} -H 'Content-Type: application/json' \\\n  -d ${quoted(counter)}`;
}

export function sendCommand(origin, withToken, now_s) {
  const time = new Date(now_s * 1000).toISOString().replace(/\.\d+Z$/, "Z");
  const event = `{"specversion": "1.0", "id": "1", "source": "hello", "type": "rain_drop",\n       "time": "${time}", "data": {"city_id": 111222}}`;
  return `curl ${quoted(`${origin}/v1/events`)} \\\n ${authorization(withToken)} -H 'Content-Type: application/cloudevents+json' \\\n  -d ${quoted(event)}`;
}
