// A command that one can copy.

import { html } from "./dom.js";

async function copy(text, code, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // Pages that are not on a secure origin may not write to the clipboard; then the text is selected for the user.
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1_600);
}

export function showCommand(host, text) {
  const code = html("code", {}, text);
  const button = html("button", { type: "button", class: "button copy" }, "Copy");
  button.addEventListener("click", () => copy(text, code, button));
  host.replaceChildren(html("pre", { tabindex: "0" }, code), button);
}
