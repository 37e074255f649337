// What a chart does beyond being seen: the value under the pointer, by keyboard too, and the picture as a file.

const SVG = "http://www.w3.org/2000/svg";
const whole = new Intl.NumberFormat("en-GB");
const fine = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 4 });

const element = (name, classes, text) => {
  const made = document.createElement(name);
  made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
};

/** A value as it is read out. */
function valueText(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "count") return whole.format(value);
  if (unit === "per_second") return `${fine.format(value)}/s`;
  if (unit === "share") return `${fine.format(value * 100)} %`;
  if (unit === "seconds") return value < 1 ? `${fine.format(value * 1000)} ms` : `${fine.format(value)} s`;
  if (unit === "bytes") return value < 1e6 ? `${fine.format(value / 1e3)} kB` : `${fine.format(value / 1e6)} MB`;
  return fine.format(value);
}

/** A bucket, or a moment, in the words of the zone's clocks. */
function timeWords(zone) {
  const weekday = new Intl.DateTimeFormat("en-GB", { timeZone: zone, weekday: "short" });
  // Dates in Swedish are those of ISO 8601.
  const date = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short" });
  const clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const day = (time) => `${weekday.format(time * 1000)} ${date.format(time * 1000)}`;
  const hour = (time) => clock.format(time * 1000);
  return (from, to) => {
    if (to === null) return `${day(from)} ${hour(from)}`;
    if (to - from > 80_000 && hour(from) === "00:00" && hour(to) === "00:00") return to - from < 100_000 ? day(from) : `${day(from)} – ${day(to - 1)}`;
    return `${day(from)} ${hour(from)} – ${to - from > 86_400 ? `${day(to)} ` : ""}${hour(to)}`;
  };
}

/** Reads the values of one figure out. */
function read(figure) {
  const data = JSON.parse(figure.dataset.chart);
  const plot = figure.querySelector(".chart-plot");
  const picture = figure.querySelector(".chart-picture");
  if (data.times.length === 0 || plot.dataset.read) return;
  plot.dataset.read = "yes";
  const when = timeWords(data.zone);
  const tip = element("div", "chart-tip");
  const spoken = element("p", "visually-hidden");
  const band = document.createElementNS(SVG, "rect");
  tip.hidden = true;
  spoken.setAttribute("aria-live", "polite");
  band.setAttribute("class", "chart-band");
  band.setAttribute("y", "14");
  band.setAttribute("height", "220");
  band.setAttribute("visibility", "hidden");
  picture.prepend(band);
  plot.append(tip, spoken);
  let chosen = -1;

  const share = (time) => (time - data.from) / Math.max(data.to - data.from, 1);
  const endOf = (index) => data.times[index + 1] ?? data.to;

  function indexAt(event) {
    const box = picture.getBoundingClientRect();
    const time = data.from + ((event.clientX - box.left) / box.width) * (data.to - data.from);
    if (time < data.from || time >= data.to) return -1;
    const index = data.times.findLastIndex((start) => start <= time);
    if (data.buckets || index < 0 || index + 1 >= data.times.length) return index;
    return time - data.times[index] > data.times[index + 1] - time ? index + 1 : index;
  }

  function show(index, aloud) {
    chosen = index;
    const [from, to] = data.buckets ? [data.times[index], endOf(index)] : [data.times[index], null];
    const rows = data.lines.map(({ name, values }) => [name, valueText(values[index], data.unit)]);
    const head = rows.length === 1 ? [element("strong", "", rows[0][1])] : rows.map(([name, value]) => {
      const row = element("span", "chart-tip-row");
      row.append(element("span", "chart-tip-name", name), element("b", "", value));
      return row;
    });
    tip.replaceChildren(...head, element("span", "", when(from, to)));
    tip.hidden = false;
    const [start, end] = data.buckets ? [share(from), share(to)] : [share(from) - 0.001, share(from) + 0.001];
    band.setAttribute("x", `${start * 100}%`);
    band.setAttribute("width", `${Math.max(end - start, 0.002) * 100}%`);
    band.setAttribute("visibility", "visible");
    const room = plot.clientWidth;
    const left = picture.getBoundingClientRect().left - plot.getBoundingClientRect().left;
    const centre = left + ((start + end) / 2) * picture.getBoundingClientRect().width;
    // The policy of the page forbids styles in HTML, but not those that a script sets one by one.
    tip.style.left = `${Math.round(Math.min(Math.max(centre - tip.offsetWidth / 2, 0), room - tip.offsetWidth))}px`;
    tip.style.top = `${-Math.round(tip.offsetHeight / 2)}px`;
    if (aloud) spoken.textContent = `${when(from, to)}: ${rows.map(([name, value]) => (rows.length === 1 ? value : `${name} ${value}`)).join(", ")}`;
  }

  function release() {
    chosen = -1;
    tip.hidden = true;
    band.setAttribute("visibility", "hidden");
  }

  plot.addEventListener("pointermove", (event) => {
    const index = indexAt(event);
    if (index < 0) release();
    else if (index !== chosen) show(index, false);
  });
  plot.addEventListener("pointerleave", release);
  plot.addEventListener("blur", release);
  plot.addEventListener("keydown", (event) => {
    const last = data.times.length - 1;
    const moves = { ArrowLeft: chosen < 0 ? last : Math.max(chosen - 1, 0), ArrowRight: Math.min(chosen + 1, last), Home: 0, End: last };
    if (event.key in moves) show(moves[event.key], true);
    else if (event.key === "Escape") release();
    else return;
    event.preventDefault();
  });
}

/** Saves the picture behind a link to an SVG file as a PNG of twice its size. */
async function savePng(button) {
  const answer = await fetch(button.dataset.png);
  if (!answer.ok) {
    button.textContent = "The picture could not be made: load the page again";
    return;
  }
  const picture = new Image();
  const source = URL.createObjectURL(new Blob([await answer.text()], { type: "image/svg+xml" }));
  picture.src = source;
  await picture.decode();
  const canvas = element("canvas", "");
  [canvas.width, canvas.height] = [picture.width * 2, picture.height * 2];
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = button.dataset.name;
    link.click();
    setTimeout(() => { URL.revokeObjectURL(link.href); URL.revokeObjectURL(source); }, 10_000);
  }, "image/png");
}

/** Charts and buttons in a part of the page that was just shown. */
function enliven(root) {
  for (const figure of root.querySelectorAll("figure[data-chart]")) read(figure);
  for (const button of root.querySelectorAll("button[data-png]")) {
    button.hidden = false;
    button.onclick = () => savePng(button);
  }
}

enliven(document);
document.addEventListener("htmx:load", (event) => enliven(event.target));
