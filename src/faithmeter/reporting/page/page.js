"use strict";
/* theme, contents, copying, printing; and for the other scripts: an element with what it contains */
const build = (tag, content, settings = {}) => {
  const made = Object.assign(document.createElement(tag), settings);
  made.append(...[content].flat());
  return made;
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
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id).setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-20% 0% -75% 0%" },
  );
  for (const id of links.keys()) seen.observe(document.getElementById(id));

  /* The clipboard may be forbidden, so the text is selected as well: Ctrl-C then does it. */
  document.getElementById("copy").addEventListener("click", async () => {
    const commands = document.getElementById("commands");
    const said = document.getElementById("copied");
    getSelection().selectAllChildren(commands);
    try {
      await navigator.clipboard.writeText(commands.textContent);
      said.textContent = "Copied.";
    } catch {
      said.textContent = document.execCommand("copy") ? "Copied." : "Selected: press Ctrl-C to copy.";
    }
  });

  /* What is folded would be missing on paper; folded charts and tables of numbers may be. */
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
