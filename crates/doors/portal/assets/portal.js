// What a page does beyond links and forms: copying, local times, the navigation. Pages work without it.

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

/** The tooltip of each time shows it by the clock of this browser. */
function showLocalTimes(root) {
  // Dates in Swedish are those of ISO 8601.
  const words = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" });
  const zone = words.resolvedOptions().timeZone;
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.valueOf())) time.title = `${words.format(moment)} ${zone}`;
  }
}

/** On a narrow screen each row of the navigation scrolls to the side: its current link comes into view. */
function showPlace() {
  for (const places of document.querySelectorAll(".places")) {
    const open = places.querySelector("[aria-current]");
    if (open) places.scrollLeft = open.offsetLeft - places.offsetLeft - (places.clientWidth - open.offsetWidth) / 2;
  }
}

/** Everything in a part of the page that was just shown. */
function enliven(root) {
  offerCopies(root);
  showLocalTimes(root);
}

showPlace();
enliven(document);
document.addEventListener("htmx:load", (event) => enliven(event.target));
