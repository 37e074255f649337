// A bar chart of one key, drawn as SVG. It is read by pointer, by keyboard (arrows, Home, End, Enter) and by screen
// reader; the table beside it holds the same numbers.

import { html, svg } from "./dom.js";
import { bucketInWords, DAY_S, wallClock } from "./time.js";
import { number, shortNumber } from "./words.js";

const HEIGHT = 264;
const MARGIN = { top: 14, right: 6, bottom: 30 };
const LABEL_WIDTH_MIN = 64;
const VALUE_TICKS = 4;
/** Bars narrower than this would only flicker; they are drawn as one surface of water instead. */
const BAR_STEP_MIN = 3;

/** Round values from at most `low` to at least `high`, a step of 1, 2 or 5 times a power of ten apart. Counts are whole. */
export function valueTicks(low, high) {
  const rough = Math.max((high - low) / VALUE_TICKS, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999));
  const ticks = [];
  for (let value = Math.floor(low / step) * step; value < high + step; value += step) ticks.push(value);
  return ticks;
}

const clockRule = (hours) => ({ at: (now) => now.minute === 0 && now.hour % hours === 0, text: clockText });
const clockText = (now) => (now.clock === "00:00" ? dayText(now) : now.clock);
const dayText = (now) => `${now.day} ${now.monthName}`;
const monthText = (now) => (now.month === 0 ? String(now.year) : now.monthName);
// A day's first bucket is found by the change of the date, because some zones have days without a midnight.
const newDay = (now, before) => before === null ? now.clock === "00:00" : now.day !== before.day;
const newMonth = (now, before) => newDay(now, before) && now.day === 1;

/** Where labels may stand on the axis of time, from fine to coarse. */
const TIME_RULES = [
  { at: () => true, text: clockText, granularity: "quarter" },
  ...[1, 3, 6, 12].map(clockRule),
  { at: newDay, text: dayText },
  { at: (now, before) => newDay(now, before) && now.day % 2 === 1 && now.day < 31, text: dayText },
  { at: (now, before) => newDay(now, before) && now.weekday === 1, text: dayText },
  { at: newMonth, text: monthText },
  { at: (now, before) => newMonth(now, before) && now.month % 3 === 0, text: monthText },
  { at: (now, before) => newMonth(now, before) && now.month === 0, text: (now) => String(now.year) },
];

/** The labels of the time axis: the finest rule whose labels have room. */
function timeTicks(buckets, granularity, zone, width) {
  const clocks = buckets.map((bucket) => wallClock(bucket.start_s, zone));
  const rules = granularity === "day" ? TIME_RULES.slice(5) : TIME_RULES;
  let ticks = [];
  for (const rule of rules) {
    ticks = [];
    clocks.forEach((now, index) => {
      if (rule.at(now, clocks[index - 1] ?? null)) ticks.push({ index, text: rule.text(now) });
    });
    if (ticks.length > 0 && ticks.length * LABEL_WIDTH_MIN <= width) break;
  }
  return ticks;
}

/** Maps buckets and counts to pixels. Bars start at whole pixels, which keeps their edges sharp. */
function layOut(buckets, width) {
  const counts = buckets.map((bucket) => bucket.count);
  const low = counts.reduce((least, count) => Math.min(least, count), 0);
  const high = counts.reduce((most, count) => Math.max(most, count), 0);
  const ticks = valueTicks(low, high === low ? low + 1 : high);
  const left = Math.max(...ticks.map((tick) => shortNumber(tick).length)) * 7 + 14;
  const plotWidth = Math.max(width - left - MARGIN.right, 40);
  const plotHeight = HEIGHT - MARGIN.top - MARGIN.bottom;
  const step = plotWidth / Math.max(buckets.length, 1);
  const gap = step >= 5 ? Math.min(Math.round(step * 0.22), 6) : step >= BAR_STEP_MIN ? 1 : 0;
  const [bottom, top] = [ticks[0], ticks.at(-1)];
  return {
    left, plotWidth, plotHeight, step, ticks,
    x: (index) => left + Math.round(index * step),
    y: (value) => MARGIN.top + Math.round((1 - (value - bottom) / (top - bottom)) * plotHeight),
    barWidth: (index) => Math.max(Math.round((index + 1) * step) - Math.round(index * step) - gap, 1),
  };
}

function barPath(layout, index, count) {
  if (count === 0) return "";
  const [x, width, base] = [layout.x(index), layout.barWidth(index), layout.y(0)];
  // A count that is not zero is never invisible.
  const height = Math.max(Math.abs(layout.y(count) - base), 1) * Math.sign(count);
  const radius = Math.min(width >= 6 ? 2 : 0, Math.abs(height)) * Math.sign(count);
  const corner = Math.abs(radius);
  return `M${x} ${base}v${radius - height}q0 ${-radius} ${corner} ${-radius}h${width - 2 * corner}q${corner} 0 ${corner} ${radius}v${height - radius}z`;
}

/** The stepped outline of all bars, for its line, and closed along the baseline, for the area under it. */
function surfacePaths(layout, buckets) {
  const base = layout.y(0) + 0.5;
  const steps = buckets.map(({ count }, index) => `V${layout.y(count) + 0.5}H${layout.x(index + 1)}`).join("");
  return [
    svg("path", { class: "surface", d: `M${layout.left} ${base}${steps}V${base}z` }),
    svg("path", { class: "surface-line", d: `M${layout.left} ${base}${steps}V${base}` }),
  ];
}

function drawBars(layout, buckets) {
  if (layout.step < BAR_STEP_MIN) return surfacePaths(layout, buckets);
  return [svg("path", { class: "bar", d: buckets.map((bucket, index) => barPath(layout, index, bucket.count)).join("") })];
}

function drawGrid(layout, width) {
  return svg("g", { "aria-hidden": "true" }, ...layout.ticks.flatMap((value) => {
    const y = layout.y(value) + 0.5;
    return [
      svg("line", { class: "gridline", x1: layout.left, x2: width - MARGIN.right, y1: y, y2: y }),
      svg("text", { class: "tick", x: layout.left - 10, y: y + 4, "text-anchor": "end" }, shortNumber(value)),
    ];
  }));
}

function drawTimeAxis(layout, ticks, width) {
  const base = layout.y(0) + 0.5;
  const group = svg("g", { "aria-hidden": "true" }, svg("line", { class: "baseline", x1: layout.left, x2: width - MARGIN.right, y1: base, y2: base }));
  const foot = MARGIN.top + layout.plotHeight + 0.5;
  for (const { index, text } of ticks) {
    const x = layout.x(index) + 0.5;
    // A label belongs to its bucket: over wide bars it is centred, under narrow ones it starts at the mark.
    const wide = layout.step >= LABEL_WIDTH_MIN / 2;
    const labelX = wide ? x + layout.barWidth(index) / 2 : x;
    if (!wide) group.append(svg("line", { class: "mark", x1: x, x2: x, y1: foot, y2: foot + 6 }));
    // A label that would stick out has no room; its mark stays.
    const room = wide || labelX + LABEL_WIDTH_MIN * 0.75 <= width;
    const place = wide ? { x: labelX, "text-anchor": "middle" } : { x: labelX + 4 };
    if (room) group.append(svg("text", { class: "tick", y: foot + 18, ...place }, text));
  }
  return group;
}

/**
 * Makes an empty chart in `host`. `show` draws buckets `{start_s, end_s, count}`; `onChoose` is called with the bucket
 * that was clicked or on which Enter was pressed.
 */
export function createChart(host, onChoose) {
  const tip = html("div", { class: "tip", hidden: true });
  const spoken = html("p", { class: "visually-hidden", "aria-live": "polite" });
  const canvas = html("div", { class: "canvas", tabindex: "0", role: "group" });
  host.replaceChildren(canvas, tip, spoken);
  let drawn = null;
  let chosen = -1;

  function point(index, aloud) {
    chosen = index;
    const { buckets, granularity, zone, layout, band, bright } = drawn;
    const bucket = buckets[index];
    const when = bucketInWords(bucket, granularity, zone);
    band.setAttribute("x", layout.x(index));
    band.setAttribute("width", layout.barWidth(index));
    band.setAttribute("visibility", "visible");
    bright.setAttribute("d", barPath(layout, index, bucket.count));
    tip.replaceChildren(html("strong", {}, number(bucket.count)), html("span", {}, when));
    tip.hidden = false;
    const centre = layout.x(index) + layout.barWidth(index) / 2;
    const left = Math.min(Math.max(centre - tip.offsetWidth / 2, 0), host.clientWidth - tip.offsetWidth);
    const above = Math.min(layout.y(bucket.count), layout.y(0)) - tip.offsetHeight - 10;
    tip.style.setProperty("transform", `translate(${Math.round(left)}px, ${Math.round(Math.max(above, -8))}px)`);
    if (aloud) spoken.textContent = `${when}: ${number(bucket.count)}`;
  }

  function release() {
    chosen = -1;
    tip.hidden = true;
    drawn?.band.setAttribute("visibility", "hidden");
    drawn?.bright.setAttribute("d", "");
  }

  function draw(data) {
    const width = Math.max(host.clientWidth, 240);
    const { buckets, granularity, zone } = data;
    const layout = layOut(buckets, width);
    const band = svg("rect", { class: "band", y: MARGIN.top, height: layout.plotHeight, visibility: "hidden" });
    const bright = svg("path", { class: "bar bright" });
    const picture = svg(
      "svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-labelledby": "chart-title chart-words" },
      svg("title", { id: "chart-title" }, data.title), svg("desc", { id: "chart-words" }, data.words),
      drawGrid(layout, width), band, ...drawBars(layout, buckets), bright,
      drawTimeAxis(layout, timeTicks(buckets, granularity, zone, layout.plotWidth), width),
    );
    canvas.replaceChildren(picture);
    canvas.setAttribute("aria-label", `${data.title}. Arrow keys read the bars.`);
    drawn = { ...data, layout, band, bright };
    release();
  }

  function indexAt(event) {
    const x = event.clientX - canvas.getBoundingClientRect().left - drawn.layout.left;
    const index = Math.floor(x / drawn.layout.step);
    return index >= 0 && index < drawn.buckets.length ? index : -1;
  }

  canvas.addEventListener("pointermove", (event) => {
    const index = drawn === null ? -1 : indexAt(event);
    if (index < 0) release();
    else if (index !== chosen) point(index, false);
  });
  canvas.addEventListener("pointerleave", release);
  canvas.addEventListener("blur", release);
  canvas.addEventListener("click", (event) => {
    const index = drawn === null ? -1 : indexAt(event);
    // A finger has no hover: its first tap reads a bar, and the range is changed with the controls.
    if (index >= 0 && event.pointerType !== "touch") onChoose(drawn.buckets[index]);
  });
  canvas.addEventListener("keydown", (event) => {
    if (drawn === null || drawn.buckets.length === 0) return;
    const last = drawn.buckets.length - 1;
    const moves = { ArrowLeft: chosen < 0 ? last : Math.max(chosen - 1, 0), ArrowRight: Math.min(chosen + 1, last), Home: 0, End: last };
    if (event.key in moves) point(moves[event.key], true);
    else if (event.key === "Enter" && chosen >= 0) onChoose(drawn.buckets[chosen]);
    else if (event.key === "Escape") release();
    else return;
    event.preventDefault();
  });
  let width_px = 0;
  new ResizeObserver(() => {
    if (drawn === null || host.clientWidth === width_px) return;
    width_px = host.clientWidth;
    draw(drawn);
  }).observe(host);

  return {
    show: draw,
    clear() {
      drawn = null;
      chosen = -1;
      tip.hidden = true;
      canvas.replaceChildren();
    },
  };
}

/** The bucket that a click on this one opens, or null when there is nothing finer to see. */
export function zoomOf(bucket, granularity) {
  if (granularity === "quarter") return null;
  return { from_s: bucket.start_s, to_s: bucket.end_s, granularity: bucket.end_s - bucket.start_s > DAY_S / 2 ? "hour" : "quarter" };
}
