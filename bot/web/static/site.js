// Small improvements of pages that work without: search and tables by keyboard, filters that apply at once, times in the
// reader's zone.
"use strict";

const search = document.getElementById("find");
const filter = document.querySelector("main input[type=search]");
const isTyping = (target) => target.closest("input, select, textarea, dialog");

// Typing hides the tests of this page that do not match; Enter asks the server for all that do.
const tests = [...document.querySelectorAll("table[data-tests] tbody tr")];
if (filter && tests.length) {
  const count = document.createElement("output");
  count.className = "dim";
  filter.form.append(count);
  const asked = filter.value;
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    let shown = 0;
    for (const row of tests) {
      row.hidden = !row.querySelector("a").textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = filter.value === asked ? "" : `${shown} of ${tests.length} on this page; Enter searches all`;
  });
}

// A choice applies at once, and the next page begins where the choice was made: arrow keys choose one after the other.
const CHOSEN = "chosen";
for (const form of document.querySelectorAll("form.filters[method=get]")) {
  const needsButton = form.querySelector("input:not([type=hidden], [type=date], [type=checkbox])");
  for (const button of form.querySelectorAll("button")) button.hidden = !needsButton;
  form.addEventListener("change", ({ target }) => {
    if (!target.matches("select, input[type=date], input[type=checkbox]")) return;
    sessionStorage.setItem(CHOSEN, target.name);
    form.requestSubmit();
  });
  // An address to share has no empty parameters.
  form.addEventListener("formdata", ({ formData }) => {
    for (const [name, text] of [...formData]) if (text === "") formData.delete(name);
  });
  const chosen = sessionStorage.getItem(CHOSEN);
  const field = chosen && form.querySelector(`[name="${CSS.escape(chosen)}"]`);
  if (field) field.focus({ preventScroll: true });
}
sessionStorage.removeItem(CHOSEN);

// What waits, as the server wrote it: below, its times change.
let waiting = document.getElementById("live")?.innerHTML;

// The server writes each time in UTC, so that all readers share one page (docs/decisions/one-page-for-all-readers.md).
// Here it becomes a distance from now.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const exact = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" }); // 2026-11-23 07:30:12
const UNITS = [["days", 86400, 2], ["h", 3600, 1], ["min", 60, 1]];
const OLD_DAYS = 60;

function distance(seconds) {
  const size = Math.abs(seconds);
  const [name, unit] = UNITS.find(([, unit, least]) => size >= unit * least) || [];
  if (!name) return "just now";
  const count = `${Math.floor(size / unit)}\u00a0${name}`;
  return seconds < 0 ? `in ${count}` : `${count} ago`;
}

function showTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const seconds = (Date.now() - moment) / 1000;
    const local = exact.format(moment);
    time.title = `${local} ${zone}; ${time.dateTime.replace("T", " ").replace("Z", " UTC")}`;
    time.textContent = seconds > OLD_DAYS * 86400 ? local.split(" ")[0] : distance(seconds);
  }
}

showTimes();
setInterval(showTimes, 60000);
const zoneNote = document.getElementById("zone");
if (zoneNote) zoneNote.textContent = `Times count from now; point at one for the exact time (${zone}).`;

// On a phone, the views of a repository scroll: the current one is in sight.
document.querySelector(".views [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// A phone shows each row as a block, and leaves zeros out.
for (const cell of document.querySelectorAll(".rows td[data-label]"))
  if (cell.textContent.trim() === "0") cell.classList.add("zero");

// What scrolls can be reached by keyboard, and says what it is.
function nameRegions() {
  for (const region of document.querySelectorAll(".scroll, main pre")) {
    const scrolls = region.scrollWidth > region.clientWidth + 1 || region.scrollHeight > region.clientHeight + 1;
    const caption = region.querySelector("caption");
    const label = caption ? caption.textContent.trim() : region.matches("pre") ? "Text" : "Table";
    for (const [name, text] of [["tabindex", "0"], ["role", "region"], ["aria-label", label]])
      if (scrolls) region.setAttribute(name, text);
      else region.removeAttribute(name);
  }
}

nameRegions();
addEventListener("resize", nameRegions);
for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", nameRegions);

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

// "/" and Ctrl-K or ⌘K search everything, "f" goes to the filter of this page, and "?" lists the keys.
document.addEventListener("keydown", (event) => {
  const opensSearch = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
  if (!opensSearch && (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))) return;
  const keys = document.getElementById("keys");
  const table = document.querySelector("table[data-keys]");
  const cell = event.target.closest("table[data-keys] :is(td, th)");
  const move = MOVES[event.key];
  let found = null;
  if (event.key === "?") keys.showModal();
  else if (opensSearch || event.key === "/") found = search;
  else if (event.key === "f") found = filter;
  else if (move && cell) found = linkFrom(cell, move);
  else if (table && (event.key === "j" || event.key === "k")) found = table.querySelector("tbody tr:not([hidden]) a");
  if (!found && event.key !== "?") return;
  event.preventDefault();
  if (!found) return;
  found.focus();
  if (found.select) found.select();
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
      if (fresh && fresh.innerHTML !== waiting) {
        waiting = fresh.innerHTML;
        live.replaceChildren(...fresh.childNodes);
        showTimes();
        nameRegions();
      }
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
