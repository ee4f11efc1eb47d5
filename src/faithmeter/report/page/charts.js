"use strict";
/* Vega charts in the theme of the page, fitted to its width, with the chosen curves */
(() => {
  const { specs, light, dark } = JSON.parse(document.getElementById("chart-data").textContent);
  const boxes = [...document.querySelectorAll("[data-chart]")];
  const boxesOpen = () => boxes.filter((box) => !box.closest("details:not([open])"));
  const chips = [...document.querySelectorAll("#switch input")];
  const MARGIN = 92; /* width of the axes and headers of a panel */
  const SLIM_MARGIN = 64; /* width of the axes of a panel without a header beside it */
  const MAX_STRETCH = 3.7; /* panels stretched further look empty */
  const PHONE_WIDTH = 480; /* views of a panel are stacked below this width */
  const MIN_VIEW_HEIGHT = 150; /* height of stacked views */
  let isDark = document.getElementById("theme").getAttribute("aria-pressed") === "true";

  /* A spec consists of panels (concat); each is a facet of views with their own width and height. */
  const rowsOf = (spec, panel) => spec.datasets[(panel.data ?? spec.data).name];
  const distinct = (rows, field) => [...new Set(rows.map((row) => row[field]))].filter((value) => value != null);

  function fit(spec, room) {
    const phone = room < PHONE_WIDTH;
    if (phone) spec.concat.forEach((panel) => stack(panel, rowsOf(spec, panel)));
    const across = (panel) => (phone ? 1 : distinct(rowsOf(spec, panel), panel.facet.column.field).length);
    const margin = phone ? SLIM_MARGIN : MARGIN;
    const views = Math.max(...spec.concat.map(across));
    const view = spec.concat[0].spec.width;
    const most = Math.max(1, Math.floor(room / (views * view + margin)));
    const columns = Math.min(spec.columns, spec.concat.length, most);
    const factor = Math.min(MAX_STRETCH, Math.max(0.6, (room / columns - margin) / (views * (view + 8))));
    for (const panel of spec.concat) {
      panel.spec.width = Math.floor(panel.spec.width * factor);
      const height = Math.floor(panel.spec.height * Math.min(factor, 2.5));
      panel.spec.height = phone ? Math.max(MIN_VIEW_HEIGHT, height) : height;
    }
    return { ...spec, columns };
  }

  /* Arrange the views of a panel in one column, each with its name above. */
  function stack(panel, rows) {
    const { column, row } = panel.facet;
    const fields = row && distinct(rows, row.field).length > 1 ? [column.field, row.field] : [column.field];
    for (const one of rows) one.view = fields.map((field) => one[field]).join(", ");
    const place = (name) => [column.sort].flat().indexOf(name.split(", ")[0]);
    const sort = distinct(rows, "view").sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
    panel.facet = { field: "view", type: "nominal", title: null, sort };
    panel.columns = 1;
  }

  /* Copy a spec without hidden curves, with as many legend columns as fit. */
  function hide(spec, hidden, room) {
    const copy = JSON.parse(JSON.stringify(spec), (key, value) => {
      if (!value?.legend?.columns) return value;
      const { domain, range } = value.scale;
      const width = 7 * Math.max(...domain.map((name) => name.length)) + 60;
      const columns = Math.min(value.legend.columns, Math.max(1, Math.floor(room / width)));
      const visible = (list) => list.filter((_, place) => !hidden.has(domain[place]));
      const scale = { ...value.scale, domain: visible(domain), range: visible(range) };
      return { ...value, scale, legend: { ...value.legend, columns } };
    });
    for (const [name, rows] of Object.entries(copy.datasets)) {
      copy.datasets[name] = rows.filter((row) => !hidden.has(row.label));
    }
    return copy;
  }

  /* Set the font of the page, in a size for screens. */
  const forScreen = (config) => ({
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
    const switches = box.dataset.chart === "faithfulness" ? chips : [];
    const hidden = new Set(switches.filter((chip) => !chip.checked).map((chip) => chip.value));
    if (hidden.size && hidden.size === switches.length) {
      box.replaceChildren(build("p", "No curve is chosen.", { className: "note" }));
      return;
    }
    const spec = fit(hide(specs[box.dataset.chart], hidden, room), room);
    const options = {
      actions: false,
      ast: true, /* avoids eval, which the page forbids */
      renderer: "svg",
      logLevel: 1, /* errors only */
      defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
      config: forScreen(isDark ? dark : light),
    };
    await vegaEmbed(box, spec, options);
    /* hide Vega's labels of hundreds of points from screen readers; the table below has the numbers */
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", label);
    box.removeAttribute("aria-roledescription");
    box.querySelector("svg").setAttribute("aria-hidden", "true");
    box.dataset.drawn = isDark ? "dark" : "light";
  }

  /* Draw a box only after its previous drawing has ended, so that the last choice is shown. */
  const pending = new Map();
  function draw(box) {
    const next = () => drawNow(box);
    pending.set(box, (pending.get(box) ?? Promise.resolve()).then(next, next));
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
    if (innerWidth === width) return; /* only the height changes when a phone hides its bars */
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
