// Small improvements of pages that work without: filtering a list as you type, and moving through the grid by keyboard.
"use strict";

for (const input of document.querySelectorAll("input[data-filters]")) {
  const rows = document.querySelectorAll(`#${input.dataset.filters} [data-name]`);
  const count = document.getElementById(`${input.dataset.filters}-count`);
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const name = row.dataset.name.toLowerCase();
      row.hidden = !words.every((word) => name.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    if (count) count.textContent = `${shown} shown`;
  };
  input.addEventListener("input", filter);
  if (input.value) filter();
}

// Arrow keys move between the cells of a grid: a table has hundreds of links, too many for the Tab key.
for (const grid of document.querySelectorAll("table[data-keys]")) {
  grid.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("td, th");
    if (!move || !cell || event.target.closest("input, select, textarea")) return;
    let row = cell.parentElement;
    let column = cell.cellIndex;
    for (;;) {
      column += move[1];
      row = grid.rows[row.rowIndex - grid.rows[0].rowIndex + move[0]];
      const next = row && row.cells[column];
      if (!next) return;
      const link = next.querySelector("a");
      if (link) {
        event.preventDefault();
        link.focus();
        return;
      }
    }
  });
}

// "/" goes to the search field, as on GitHub.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  const field = document.querySelector("input[type=search]");
  if (field) {
    event.preventDefault();
    field.focus();
  }
});

// What waits for something is asked for again until it says that there is nothing more to wait for.
const live = document.getElementById("live");
if (live) {
  const again = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      if (fresh && fresh.innerHTML !== live.innerHTML) {
        live.replaceChildren(...fresh.childNodes);
        if (!fresh.dataset.wait) document.title = page.title;
      }
      if (fresh && !fresh.dataset.wait) delete live.dataset.wait;
    } catch {
      // The server is starting.
    }
    if (live.dataset.wait) setTimeout(again, 2000);
  };
  if (live.dataset.wait) setTimeout(again, 2000);
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
