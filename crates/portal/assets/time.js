// Time zones, buckets and ranges. Instants are epoch seconds; a "local" time is the wall clock of a zone,
// written as if it were UTC, which makes its arithmetic plain.

export const QUARTER_S = 900;
export const HOUR_S = 3_600;
export const DAY_S = 86_400;

/** The server answers at most this many points a series. */
export const SERIES_POINTS_MAX = 10_000;

export const GRANULARITIES = ["quarter", "hour", "day"];

const GRANULARITY_S = { quarter: QUARTER_S, hour: HOUR_S, day: DAY_S };

/** Ranges that end now, by their length in days. */
export const ROLLING_DAYS = { "24h": 1, "7d": 7, "30d": 30, "90d": 90, "1y": 365 };

/** A stretch of data ends where this many days pass without any. */
const SILENT_DAYS_MAX = 60;

/** A stretch that holds less than this share of everything is taken for stray clocks, not for the latest data. */
const STRETCH_SHARE_MIN = 0.01;

/** The latest data are shown for at most this long. */
const LATEST_DAYS_MAX = 366;

const offsetFormats = new Map();
const offsets = new Map();

export function isZone(zone) {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

export function browserZone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
}

function offsetFormat(zone) {
  let format = offsetFormats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric",
    });
    offsetFormats.set(zone, format);
  }
  return format;
}

/** How far the zone's wall clock is ahead of UTC. Remembered by quarter hour, because a chart asks thousands of times. */
export function offset_s(time_s, zone) {
  if (zone === "UTC") return 0;
  const quarter_s = Math.floor(time_s / QUARTER_S) * QUARTER_S;
  const name = `${zone} ${quarter_s}`;
  let offset = offsets.get(name);
  if (offset === undefined) {
    if (offsets.size > 200_000) offsets.clear();
    const part = {};
    for (const { type, value } of offsetFormat(zone).formatToParts(quarter_s * 1000)) part[type] = Number(value);
    offset = Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute) / 1000 - quarter_s;
    offsets.set(name, offset);
  }
  return offset;
}

export function toLocal(time_s, zone) {
  return time_s + offset_s(time_s, zone);
}

/**
 * The first instant at which the zone's clock shows this local time. A time that the clock skips gives the instant
 * of the skip, so that a day whose midnight does not exist begins where its first minute does.
 */
export function fromLocal(local_s, zone) {
  const before_s = local_s - offset_s(local_s - DAY_S, zone);
  const after_s = local_s - offset_s(local_s + DAY_S, zone);
  const real = [before_s, after_s].filter((instant_s) => toLocal(instant_s, zone) === local_s);
  return real.length === 0 ? before_s : Math.min(...real);
}

/** The bucket that holds the instant; hours and days are cut where the zone's clock cuts them. */
export function startOfBucket(time_s, granularity, zone) {
  if (granularity === "quarter") return Math.floor(time_s / QUARTER_S) * QUARTER_S;
  const length_s = GRANULARITY_S[granularity];
  const local_s = Math.floor(toLocal(time_s, zone) / length_s) * length_s;
  return granularity === "day" ? fromLocal(local_s, zone) : local_s - offset_s(time_s, zone);
}

export function nextBucket(start_s, granularity, zone) {
  // A local day lasts 23 to 25 hours, so 36 hours after its start it is always the next day.
  if (granularity === "day") return startOfBucket(start_s + 36 * HOUR_S, "day", zone);
  return start_s + GRANULARITY_S[granularity];
}

function endOfBucket(time_s, granularity, zone) {
  const start_s = startOfBucket(time_s, granularity, zone);
  return start_s === time_s ? time_s : nextBucket(start_s, granularity, zone);
}

/** Every bucket that the range touches, as {start_s, end_s}. */
export function bucketsOf(range, granularity, zone) {
  const buckets = [];
  let start_s = startOfBucket(range.from_s, granularity, zone);
  while (start_s < range.to_s && buckets.length <= SERIES_POINTS_MAX) {
    const end_s = nextBucket(start_s, granularity, zone);
    buckets.push({ start_s, end_s });
    start_s = end_s;
  }
  return buckets;
}

export function fits(length_s, granularity) {
  return length_s / GRANULARITY_S[granularity] <= SERIES_POINTS_MAX - 2;
}

/**
 * The granularity that shows a range of this length with a few hundred bars at most, and whose counts are still kept
 * for a range that began `age_s` ago.
 */
export function granularityFor(length_s, age_s, retentionDays) {
  const kept = (granularity) => age_s <= (retentionDays?.[granularity] ?? Infinity) * DAY_S;
  if (length_s <= 2 * DAY_S && kept("quarter")) return "quarter";
  return length_s <= 14 * DAY_S && kept("hour") ? "hour" : "day";
}

/**
 * A range that ends with the bucket that is open now. It is cut at whole buckets, so the bars add up to the count;
 * the open bucket is inside it, because an event that just happened should be seen.
 */
export function rollingRange(days, now_s, granularity, zone) {
  const to_s = nextBucket(startOfBucket(now_s, granularity, zone), granularity, zone);
  // Two hours of slack keep a change of the clocks from reaching into one more local day.
  const slack_s = granularity === "day" ? 2 * HOUR_S : 0;
  return { from_s: startOfBucket(to_s - days * DAY_S + slack_s, granularity, zone), to_s };
}

/** Widens a range to whole buckets of the zone. */
export function alignedRange(range, granularity, zone) {
  return { from_s: startOfBucket(range.from_s, granularity, zone), to_s: endOfBucket(range.to_s, granularity, zone) };
}

/**
 * The latest stretch of days that hold data, or null without any. Real data have strays (a taxi whose clock says
 * 2008), so a stretch ends at a long silence, and one that holds next to nothing is passed over.
 */
export function latestStretch(points) {
  const days = points.filter((point) => point.count !== 0);
  const stretches = [];
  let everything = 0;
  for (const { time_s, count } of days) {
    let stretch = stretches.at(-1);
    if (stretch === undefined || time_s - stretch.last_s > SILENT_DAYS_MAX * DAY_S) {
      stretch = { first_s: time_s, last_s: time_s, weight: 0 };
      stretches.push(stretch);
    }
    stretch.last_s = time_s;
    stretch.weight += Math.abs(count);
    everything += Math.abs(count);
  }
  const latest = stretches.findLast((stretch) => stretch.weight >= everything * STRETCH_SHARE_MIN);
  if (latest === undefined) return null;
  const to_s = latest.last_s + DAY_S;
  return { from_s: Math.max(latest.first_s, to_s - LATEST_DAYS_MAX * DAY_S), to_s };
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

const twoDigits = (number) => String(number).padStart(2, "0");

/** The wall clock of the zone at this instant, in its parts. */
export function wallClock(time_s, zone) {
  const date = new Date(toLocal(time_s, zone) * 1000);
  const month = date.getUTCMonth();
  return {
    year: date.getUTCFullYear(), month, day: date.getUTCDate(), weekday: date.getUTCDay(),
    hour: date.getUTCHours(), minute: date.getUTCMinutes(),
    monthName: MONTHS[month], weekdayName: WEEKDAYS[date.getUTCDay()],
    clock: `${twoDigits(date.getUTCHours())}:${twoDigits(date.getUTCMinutes())}`,
  };
}

export function dateInWords(time_s, zone) {
  const wall = wallClock(time_s, zone);
  return `${wall.day} ${wall.monthName} ${wall.year}`;
}

export function bucketInWords(bucket, granularity, zone) {
  const wall = wallClock(bucket.start_s, zone);
  const date = `${wall.weekdayName} ${wall.day} ${wall.monthName} ${wall.year}`;
  return granularity === "day" ? date : `${date}, ${wall.clock} – ${wallClock(bucket.end_s, zone).clock}`;
}

/** "1 Nov 2018 – 30 Nov 2018" for whole days, which is how people name them; with clock times otherwise. */
export function rangeInWords(range, zone) {
  const start = wallClock(range.from_s, zone);
  const end = wallClock(range.to_s, zone);
  if (start.clock === "00:00" && end.clock === "00:00") {
    const first = dateInWords(range.from_s, zone);
    const last = dateInWords(range.to_s - 1, zone);
    return first === last ? first : `${first} – ${last}`;
  }
  return `${dateInWords(range.from_s, zone)}, ${start.clock} – ${dateInWords(range.to_s, zone)}, ${end.clock}`;
}

/** What an `<input type="datetime-local">` holds, and back. */
export function toInput(time_s, zone) {
  return new Date(toLocal(time_s, zone) * 1000).toISOString().slice(0, 16);
}

export function fromInput(text, zone) {
  const local_ms = Date.parse(`${text}Z`);
  return Number.isNaN(local_ms) ? null : fromLocal(Math.floor(local_ms / 1000 / QUARTER_S) * QUARTER_S, zone);
}

/** A time of the API: epoch seconds or RFC 3339. */
export function fromApi(time) {
  return typeof time === "number" ? time : Date.parse(time) / 1000;
}
