// Parts of a page that refresh themselves: they pause while the page is hidden, what was opened stays open, and a
// screen reader hears of warnings when they change, not every five seconds.

const isLive = (element) => element instanceof Element && element.matches("[data-live]");

document.addEventListener("htmx:beforeRequest", (event) => {
  if (isLive(event.target) && document.hidden) event.preventDefault();
});

/** The open details of a part, by their place in it. */
let opened = [];
let scrolled = [];

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isLive(event.target)) return;
  opened = [...event.target.querySelectorAll("details")].map((details) => details.open);
  scrolled = [...event.target.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
});

document.addEventListener("htmx:afterSettle", () => {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  live.querySelectorAll("details").forEach((details, place) => { if (opened[place]) details.open = true; });
  live.querySelectorAll(".scroll").forEach((box, place) => {
    if (scrolled[place]) [box.scrollLeft, box.scrollTop] = scrolled[place];
  });
  announce();
});

let announced = null;

/** Announces the warnings when they have changed. */
function announce() {
  const place = document.getElementById("system-announcements");
  if (!place) return;
  const warnings = [...document.querySelectorAll("[data-warning]")].map((warning) => warning.textContent.trim());
  const text = warnings.join(" ");
  if (announced !== null && text !== announced) place.textContent = text || "All warnings are over.";
  announced = text;
}

announce();
