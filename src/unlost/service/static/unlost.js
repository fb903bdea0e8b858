"use strict";
// The page works without this. With it, it says that archives are being asked, and lists the copies of a year in place.

const statusLine = document.getElementById("status");
const form = document.querySelector("form");

if (form && statusLine) {
  form.addEventListener("submit", () => {
    for (const input of form.querySelectorAll("input")) {
      if (input.value === "" && input.name !== "uri") input.disabled = true; // shorter addresses
    }
    statusLine.textContent = "Asking archives…";
  });
  window.addEventListener("pageshow", () => {
    for (const input of form.querySelectorAll("input")) input.disabled = false;
    statusLine.textContent = "";
  });
}

async function list(address) {
  const section = document.getElementById("copies");
  const answer = await fetch(address);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("copies");
  if (!section || !fresh) throw new Error("no list of copies");
  section.replaceWith(document.adoptNode(fresh));
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
