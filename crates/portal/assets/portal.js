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

/** Everything in a part of the page that was just shown. */
function enliven(root) {
  offerCopies(root);
}

enliven(document);
document.addEventListener("htmx:load", (event) => enliven(event.target));
