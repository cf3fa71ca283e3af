// Small improvements of pages that work without: a filter as you type, and moving through tables by keyboard.
"use strict";

const search = document.querySelector("input[type=search]");
const isTyping = (target) => target.closest("input, select, textarea, dialog");

// Typing hides the tests of this page that do not match; Enter asks the server for all that do.
const tests = [...document.querySelectorAll("table[data-tests] tbody tr")];
if (search && tests.length) {
  const count = document.createElement("output");
  count.className = "dim";
  search.form.append(count);
  const asked = search.value;
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of tests) {
      row.hidden = !row.querySelector("a").textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = search.value === asked ? "" : `${shown} of ${tests.length} on this page; Enter searches all`;
  });
}

// Arrow keys, j and k move between the links of a table: there are hundreds, too many for the Tab key.
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], j: [1, 0], k: [-1, 0] };

function linkFrom(cell, [down, right]) {
  const rows = [...cell.closest("table").rows].filter((row) => !row.hidden);
  let place = rows.indexOf(cell.parentElement);
  let column = cell.cellIndex;
  for (;;) {
    place += down;
    column += right;
    const next = rows[place] && rows[place].cells[column];
    if (!next) return null;
    const link = next.querySelector("a");
    if (link) return link;
  }
}

// "/" goes to the search field, as on GitHub, and "?" lists the keys.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const keys = document.getElementById("keys");
  const table = document.querySelector("table[data-keys]");
  const cell = event.target.closest("table[data-keys] :is(td, th)");
  const move = MOVES[event.key];
  let found = null;
  if (event.key === "?") keys.showModal();
  else if (event.key === "/") found = search;
  else if (move && cell) found = linkFrom(cell, move);
  else if (table && (event.key === "j" || event.key === "k")) found = table.querySelector("tbody tr:not([hidden]) a");
  if (!found && event.key !== "?") return;
  event.preventDefault();
  if (found) found.focus();
});

for (const button of document.querySelectorAll("button[data-opens]")) {
  button.hidden = false;
  button.addEventListener("click", () => document.getElementById(button.dataset.opens).showModal());
}

// What waits for something is asked for again until it says that there is nothing more to wait for.
const live = document.getElementById("live");
if (live) {
  const pause = Math.max(2, live.dataset.wait) * 1000;
  const again = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      if (fresh && !fresh.dataset.wait) {
        location.reload();
        return;
      }
      if (fresh && fresh.innerHTML !== live.innerHTML) live.replaceChildren(...fresh.childNodes);
    } catch {
      // The server is starting.
    }
    setTimeout(again, pause);
  };
  if (live.dataset.wait) setTimeout(again, pause);
}

// A button beside a command copies it.
for (const button of document.querySelectorAll("button[data-copies]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.textContent = "Copied";
  });
}
