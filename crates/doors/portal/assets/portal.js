// What a page does beyond links and forms: copying, and whatever carries a data attribute below. Pages work without it.

/** Buttons that copy the text beside them. */
function offerCopies(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.onclick = async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1_500);
    };
  }
}

/** Moments say on request when they are by the clock of this browser. */
function tellLocalTimes(root) {
  // Dates in Swedish are those of ISO 8601.
  const words = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" });
  const zone = words.resolvedOptions().timeZone;
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.valueOf())) time.title = `${words.format(moment)} ${zone}`;
  }
}

/** On a narrow screen the places scroll to the side: the one that is open comes into view. */
function showPlace() {
  const places = document.querySelector(".places");
  const open = places?.querySelector("[aria-current]");
  if (open) places.scrollLeft = open.offsetLeft - places.offsetLeft - (places.clientWidth - open.offsetWidth) / 2;
}

/** Everything in a part of the page that was just shown. */
function enliven(root) {
  offerCopies(root);
  tellLocalTimes(root);
}

showPlace();
enliven(document);
document.addEventListener("htmx:load", (event) => enliven(event.target));
