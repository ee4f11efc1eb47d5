"use strict";
/* Theme, table of contents, copying and printing; `build` creates elements for all scripts. */
const build = (tag, content, settings = {}) => {
  const element = Object.assign(document.createElement(tag), settings);
  element.append(...[content].flat());
  return element;
};
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  function show() {
    button.setAttribute("aria-pressed", String(dark()));
    document.dispatchEvent(new CustomEvent("theme", { detail: dark() }));
  }
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    show();
  });
  system.addEventListener("change", show);
  show();

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id).setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-20% 0% -75% 0%" },
  );
  for (const id of links.keys()) observer.observe(document.getElementById(id));

  const menu = document.getElementById("menu");
  const open = (expanded) => menu.setAttribute("aria-expanded", String(expanded));
  menu.addEventListener("click", () => open(menu.getAttribute("aria-expanded") !== "true"));
  for (const link of links.values()) link.addEventListener("click", () => open(false));
  document.addEventListener("keydown", (event) => event.key === "Escape" && open(false));

  /* Select the text, too, because access to the clipboard may be forbidden and Ctrl-C then copies it. */
  document.getElementById("copy").addEventListener("click", async () => {
    const commands = document.getElementById("commands");
    const message = document.getElementById("copied");
    getSelection().selectAllChildren(commands);
    try {
      await navigator.clipboard.writeText(commands.textContent);
      message.textContent = "Copied.";
    } catch {
      message.textContent = document.execCommand("copy") ? "Copied." : "Selected: press Ctrl-C to copy.";
    }
  });

  /* Open folded parts for printing, except charts and their numbers. */
  const folded = document.querySelectorAll("details:not([data-numbers], :has([data-chart]))");
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...folded].filter((details) => !details.open);
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();
