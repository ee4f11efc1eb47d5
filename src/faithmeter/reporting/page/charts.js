"use strict";
/* Vega charts: in the page's theme, as wide as there is room, with the chosen methods */
(() => {
  const { specs, light, dark } = JSON.parse(document.getElementById("chart-data").textContent);
  const boxes = [...document.querySelectorAll("[data-chart]")];
  const boxesOpen = () => boxes.filter((box) => !box.closest("details:not([open])"));
  const chips = [...document.querySelectorAll("#switch input")];
  const MARGIN = 92; /* what the axes and headers of a panel take, */
  const SLIM = 64; /* and without a header beside it */
  const LARGEST = 3.7; /* beyond, panels look empty */
  const PHONE = 480; /* below, the views of a panel stand on each other */
  const LEGIBLE = 150; /* the least height of a view then */
  let isDark = document.getElementById("theme").getAttribute("aria-pressed") === "true";

  /* A spec has panels (concat), each a facet of views with a width and a height of their own. */
  const rowsOf = (spec, panel) => spec.datasets[(panel.data ?? spec.data).name];
  const distinct = (rows, field) => [...new Set(rows.map((row) => row[field]))].filter((value) => value != null);

  function fitted(spec, room) {
    const phone = room < PHONE;
    if (phone) spec.concat.forEach((panel) => stack(panel, rowsOf(spec, panel)));
    const across = (panel) => (phone ? 1 : distinct(rowsOf(spec, panel), panel.facet.column.field).length);
    const margin = phone ? SLIM : MARGIN;
    const views = Math.max(...spec.concat.map(across));
    const view = spec.concat[0].spec.width;
    const fit = Math.max(1, Math.floor(room / (views * view + margin)));
    const columns = Math.min(spec.columns, spec.concat.length, fit);
    const factor = Math.min(LARGEST, Math.max(0.6, (room / columns - margin) / (views * (view + 8))));
    for (const panel of spec.concat) {
      panel.spec.width = Math.floor(panel.spec.width * factor);
      const height = Math.floor(panel.spec.height * Math.min(factor, 2.5));
      panel.spec.height = phone ? Math.max(LEGIBLE, height) : height;
    }
    return { ...spec, columns };
  }

  /* A column and a row of views become one column, each with its name above. */
  function stack(panel, rows) {
    const { column, row } = panel.facet;
    const fields = row && distinct(rows, row.field).length > 1 ? [column.field, row.field] : [column.field];
    for (const one of rows) one.view = fields.map((field) => one[field]).join(", ");
    const place = (name) => [column.sort].flat().indexOf(name.split(", ")[0]);
    const sort = distinct(rows, "view").sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
    panel.facet = { field: "view", type: "nominal", title: null, sort };
    panel.columns = 1;
  }

  /* A copy of a spec without what is hidden, and with legends of as many columns as there is room for. */
  function chosen(spec, hidden, room) {
    const copy = JSON.parse(JSON.stringify(spec), (key, value) => {
      if (!value?.legend?.columns) return value;
      const { domain, range } = value.scale;
      const width = 7 * Math.max(...domain.map((name) => name.length)) + 40;
      const columns = Math.min(value.legend.columns, Math.max(1, Math.floor(room / width)));
      const kept = (list) => list.filter((_, place) => !hidden.has(domain[place]));
      const scale = { ...value.scale, domain: kept(domain), range: kept(range) };
      return { ...value, scale, legend: { ...value.legend, columns } };
    });
    for (const [name, rows] of Object.entries(copy.datasets)) {
      copy.datasets[name] = rows.filter((row) => !hidden.has(row.label));
    }
    return copy;
  }

  /* The letters of the page, and of a size to be read on a screen. */
  const larger = (config) => ({
    ...config,
    font: getComputedStyle(document.body).fontFamily,
    title: { ...config.title, fontSize: 14 },
    header: { ...config.header, labelFontSize: 12 },
    axis: { ...config.axis, labelFontSize: 11, titleFontSize: 12 },
    legend: { ...config.legend, labelFontSize: 12, titleFontSize: 12 },
  });

  async function drawNow(box) {
    const room = box.clientWidth;
    const label = box.getAttribute("aria-label");
    const switched = box.dataset.chart === "faithfulness" ? chips : [];
    const hidden = new Set(switched.filter((chip) => !chip.checked).map((chip) => chip.value));
    if (hidden.size && hidden.size === switched.length) {
      box.replaceChildren(build("p", "No method is chosen.", { className: "note" }));
      return;
    }
    const spec = fitted(chosen(specs[box.dataset.chart], hidden, room), room);
    const options = {
      actions: false,
      ast: true, /* no eval: the page forbids it */
      renderer: "svg",
      logLevel: 1, /* errors only */
      defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
      config: larger(isDark ? dark : light),
    };
    await vegaEmbed(box, spec, options);
    /* Vega names the box its own way; hundreds of named points would not help, the numbers are below */
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", label);
    box.removeAttribute("aria-roledescription");
    box.querySelector("svg").setAttribute("aria-hidden", "true");
    box.dataset.drawn = isDark ? "dark" : "light";
  }

  /* One drawing of a box after the other: the last one shows what was chosen last. */
  const drawn = new Map();
  function draw(box) {
    const next = () => drawNow(box);
    drawn.set(box, (drawn.get(box) ?? Promise.resolve()).then(next, next));
  }

  const redraw = () => boxesOpen().forEach(draw);
  redraw();
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => {
      if (details.open) details.querySelectorAll("[data-chart]").forEach(draw);
    });
  }
  document.addEventListener("theme", (event) => {
    isDark = event.detail;
    redraw();
  });
  let width = innerWidth;
  let waiting;
  addEventListener("resize", () => {
    if (innerWidth === width) return; /* a phone's bars come and go */
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 150);
  });

  const again = () => boxes.filter((box) => box.dataset.chart === "faithfulness").forEach(draw);
  for (const chip of chips) chip.addEventListener("change", again);
  const all = (checked) => () => {
    for (const chip of chips) chip.checked = checked;
    again();
  };
  document.getElementById("switch-all")?.addEventListener("click", all(true));
  document.getElementById("switch-none")?.addEventListener("click", all(false));
})();
