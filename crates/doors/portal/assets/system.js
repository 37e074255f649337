// Parts of a page that renew themselves: nobody is looked after who does not look, what was opened stays open, and a
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
  say();
});

let said = null;

/** Says the warnings when they are others than before. */
function say() {
  const place = document.getElementById("system-said");
  if (!place) return;
  const warnings = [...document.querySelectorAll("[data-warning]")].map((warning) => warning.textContent.trim());
  const text = warnings.join(" ");
  if (said !== null && text !== said) place.textContent = text || "All warnings are over.";
  said = text;
}

say();
