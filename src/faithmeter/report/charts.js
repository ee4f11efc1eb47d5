"use strict";
/* Vega charts: in the page's theme, as wide as there is room, with the chosen methods */
(() => {
  const { specs, light, dark } = JSON.parse(document.getElementById("chart-data").textContent);
  const boxes = [...document.querySelectorAll("[data-chart]")];
  const boxesOpen = () => boxes.filter((box) => !box.closest("details:not([open])"));
  const chips = [...document.querySelectorAll("#switch input")];
  const MARGIN = 92; /* what the axes and headers of a panel take */
  const LARGEST = 3.7; /* beyond, panels look empty */
  let isDark = document.getElementById("theme").getAttribute("aria-pressed") === "true";

  /* A spec has panels (concat), each a facet of views with a width and a height of their own. */
  function fitted(spec, room) {
    const across = (panel) => {
      const field = panel.facet?.column?.field;
      const rows = spec.datasets[(panel.data ?? spec.data).name];
      return field ? new Set(rows.map((row) => row[field]).filter((value) => value != null)).size : 1;
    };
    const views = Math.max(...spec.concat.map(across));
    const view = spec.concat[0].spec.width;
    const fit = Math.max(1, Math.floor(room / (views * view + MARGIN)));
    const columns = Math.min(spec.columns, spec.concat.length, fit);
    const factor = Math.min(LARGEST, Math.max(0.6, (room / columns - MARGIN) / (views * (view + 8))));
    for (const panel of spec.concat) {
      panel.spec.width = Math.floor(panel.spec.width * factor);
      panel.spec.height = Math.floor(panel.spec.height * Math.min(factor, 2.5));
    }
    return { ...spec, columns };
  }

  /* A copy of a spec with a legend of as many columns as there is room for. */
  function narrowed(spec, room) {
    const fitting = (names) => Math.floor(room / (7 * Math.max(...names.map((name) => name.length)) + 40));
    return JSON.parse(JSON.stringify(spec), (key, value) => {
      if (key !== "color" || !value.legend?.columns) return value;
      const columns = Math.min(value.legend.columns, Math.max(1, fitting(value.scale.domain)));
      return { ...value, legend: { ...value.legend, columns } };
    });
  }

  function chosen(spec) {
    const hidden = new Set(chips.filter((chip) => !chip.checked).map((chip) => chip.value));
    for (const [name, rows] of Object.entries(spec.datasets)) {
      spec.datasets[name] = rows.filter((row) => !hidden.has(row.name));
    }
    return spec;
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

  async function draw(box) {
    const room = box.clientWidth;
    let spec = narrowed(specs[box.dataset.chart], room);
    spec = fitted(spec, room);
    if (box.dataset.chart === "faithfulness") spec = chosen(spec);
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
    /* the box says what it shows; hundreds of named points would not help */
    box.querySelector("svg").setAttribute("aria-hidden", "true");
    box.dataset.drawn = isDark ? "dark" : "light";
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
