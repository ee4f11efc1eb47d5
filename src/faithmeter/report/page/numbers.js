"use strict";
/* Tables with the numbers of a chart, one for each panel, built when they are opened */
(() => {
  const KEYS = {
    model: "Model",
    tuning: "Fine-tuning",
    strategy: "Masked training texts",
    validation: "Validation texts",
    way: "Measured by",
    group: "Scores",
    label: "Method",
  };
  const STEPS = { percent: (value) => `${value} %`, epoch: (value) => `Epoch ${value}` };
  const heading = (text, scope) => build("th", text, { scope });

  /* Round the exact fraction, half to even, like `format_percent` in Python. */
  function formatPercent(value) {
    const fraction = value / 100;
    const isHalf = Math.abs((fraction * 16) % 2) === 1; /* only odd sixteenths are exact ties */
    return (isHalf ? Math.round(fraction * 500) / 5 : 100 * Number(fraction.toFixed(3))).toFixed(1);
  }
  const formatP = (value) => (value < 0.001 ? "<0.001" : value.toFixed(3));

  function format(row, number) {
    if (!row) return "–";
    const [lower, upper] = [number(row.lower), number(row.upper)];
    return number(row.mean) + (lower === upper ? "" : ` [${lower}, ${upper}]`);
  }

  /* Group the rows of a panel by key, in the order of the legend and the facet. */
  function linesOf(rows, keys, panel) {
    const { color } = panel.spec.layer.at(-1).encoding;
    const { column } = panel.facet;
    const orders = { [column.field]: [column.sort].flat(), [color.field]: color.scale.domain };
    const place = (name, row) => orders[name]?.indexOf(row[name]) ?? 0;
    const before = (a, b) => keys.reduce((order, name) => order || place(name, a) - place(name, b), 0);
    const lines = new Map();
    for (const row of rows.toSorted(before)) {
      const line = keys.map((name) => row[name]).join("\n");
      lines.set(line, [...(lines.get(line) ?? []), row]);
    }
    return [...lines.values()];
  }

  function table(spec, panel) {
    const rows = spec.datasets[(panel.data ?? spec.data).name].filter((row) => row.part === "mean");
    const values = (name) => [...new Set(rows.map((row) => row[name]))];
    const varies = (name) => name in rows[0] && (name !== "model" || values(name).length > 1);
    const keys = Object.keys(KEYS).filter(varies);
    const step = Object.keys(STEPS).find((name) => name in rows[0]);
    const steps = step ? values(step).sort((a, b) => a - b) : [];
    const seeds = rows.some((row) => row.n > 1);
    const interval = rows.some((row) => row.lower < row.upper) ? ", 95 % interval over texts" : "";
    const over = seeds ? ", mean over seeds with its 95 % interval" : interval;
    const unit = panel.spec.layer.at(-1).encoding.y.title;
    const number = unit.endsWith("(%)") ? formatPercent : formatP;
    const head = [...keys.map((name) => KEYS[name]), ...(step ? steps.map(STEPS[step]) : ["Mean"]), ...(seeds ? ["Seeds"] : [])];
    const body = linesOf(rows, keys, panel).map((line) => {
      const points = step ? steps.map((value) => line.find((row) => row[step] === value)) : line;
      const cells = [...points.map((row) => format(row, number)), ...(seeds ? [String(line[0].n)] : [])];
      const names = keys.map((name) => heading(line[0][name], "row"));
      return build("tr", [...names, ...cells.map((text) => build("td", text))]);
    });
    const caption = build("caption", `${panel.title}: ${unit}${over}`);
    const first = build("thead", build("tr", head.map((text) => heading(text, "col"))));
    return build("table", [caption, first, build("tbody", body)]);
  }

  for (const details of document.querySelectorAll("[data-numbers]")) {
    const fill = () => {
      const spec = JSON.parse(document.getElementById("chart-data").textContent).specs[details.dataset.numbers];
      details.querySelector("div").append(...spec.concat.map((panel) => table(spec, panel)));
    };
    details.addEventListener("toggle", fill, { once: true });
  }
})();
