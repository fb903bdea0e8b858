"use strict";
// Every page works without this. With it, fields are checked while one types, archives are asked meanwhile, and pages
// of what goes on show it as it happens.

const statusLine = document.getElementById("status");
const search = document.querySelector("form[role=search]");

if (search && statusLine) {
  search.addEventListener("submit", () => {
    for (const input of search.querySelectorAll("input")) {
      if (input.value === "" && input.name !== "uri") input.disabled = true; // shorter addresses
    }
    statusLine.textContent = statusLine.dataset.asking;
  });
  window.addEventListener("pageshow", () => {
    for (const input of search.querySelectorAll("input")) input.disabled = false;
    statusLine.textContent = "";
  });
}

async function fetched(address, options) {
  const answer = await fetch(address, { credentials: "same-origin", ...options });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer;
}

async function part(address, id) {
  const answer = await fetched(address);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById(id);
  if (!found) throw new Error(`no ${id}`);
  return document.adoptNode(found);
}

// The copies of one year, in place.
async function list(address) {
  const fresh = await part(address, "copies");
  document.getElementById("copies").replaceWith(fresh);
  fresh.focus();
  fresh.scrollIntoView({ block: "start" });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a[data-list]") : null;
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  list(link.href).then(
    () => history.replaceState(null, "", link.href),
    () => location.assign(link.href),
  );
});

// The form of an order: what is wrong is said beside each field that one has been in, and what archives hold below.
function later(work, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

function order(form) {
  const touched = new Set();
  const holdings = document.getElementById("holdings");
  let asked = form.elements.url.value, checks = 0, looks = 0;

  function show(faults) {
    for (const line of form.querySelectorAll("[data-fault]")) {
      const name = line.dataset.fault;
      const text = touched.has(name) ? faults[name] || "" : line.textContent;
      if (line.textContent !== text) line.textContent = text;
      const field = form.elements[name];
      if (field instanceof HTMLInputElement && touched.has(name)) {
        if (text) field.setAttribute("aria-invalid", "true");
        else field.removeAttribute("aria-invalid");
      }
    }
  }

  async function look(url) {
    const mine = ++looks;
    holdings.textContent = form.dataset.asking;
    const answer = await fetched(`${form.dataset.holdings}?url=${encodeURIComponent(url)}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine === looks) holdings.replaceChildren(...page.body.childNodes);
  }

  async function check() {
    const mine = ++checks;
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetched(form.dataset.check, { method: "POST", body });
    const faults = await answer.json();
    if (mine !== checks) return;
    show(faults);
    const url = form.elements.url.value.trim();
    if (touched.has("url") && !faults.url && url !== asked) {
      asked = url;
      look(url).catch(() => holdings.replaceChildren());
    }
  }

  const soon = later(() => check().catch(() => {}), 400);
  form.addEventListener("input", (event) => {
    // What is being typed for the first time is not called wrong before it can be right.
    if (event.target.getAttribute("aria-invalid")) soon();
    if (event.target.name === "url" || event.target.type === "radio") soon();
  });
  form.addEventListener("change", (event) => {
    touched.add(event.target.name);
    soon();
  });
  form.addEventListener("click", (event) => {
    if (event.target.name !== "look") return;
    event.preventDefault();
    touched.add("url");
    asked = "";
    check().catch(() => {});
  });
}

const ordering = document.querySelector("form[data-check]");
if (ordering) order(ordering);
const faults = document.getElementById("faults");
if (faults) faults.focus();

// How a job gets on: each event has the page asked for again, and what has changed put in its place.
function follow(live) {
  const events = new EventSource(live.dataset.events);
  let busy = false, again = false, timer = 0;
  async function renew() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    do {
      again = false;
      const fresh = await part(location.pathname + location.search, "live");
      const open = [...live.querySelectorAll("details[open]")].length > 0;
      const ended = !fresh.dataset.events; // that is shown whatever one is at
      if (fresh.innerHTML !== live.innerHTML && (ended || (!live.contains(document.activeElement) && !open))) {
        live.replaceChildren(...fresh.childNodes);
      }
      if (ended) {
        events.close();
        clearInterval(timer);
      }
    } while (again);
    busy = false;
  }
  const soon = () => renew().catch(() => { busy = false; });
  events.addEventListener("job", soon);
  // Where there is no room for another stream, the page is asked for now and then.
  events.addEventListener("error", () => {
    if (events.readyState === EventSource.CLOSED && !timer) timer = setInterval(soon, 10000);
  });
}

const live = document.getElementById("live");
if (live && live.dataset.events) follow(live);

// Lists for those who look after jobs: asked for again as long as nobody is about to do something in them.
function refresh(part_, seconds) {
  setInterval(() => {
    if (document.hidden || part_.contains(document.activeElement)) return;
    part(location.pathname + location.search, part_.id).then(
      (fresh) => part_.replaceChildren(...fresh.childNodes),
      () => {},
    );
  }, seconds * 1000);
}

const fresh = document.getElementById("fresh");
if (fresh) refresh(fresh, Number(fresh.dataset.seconds) || 5);
