// Measurement of one text: doubts, the erasure curve beside random orders, and a table of the methods.

import { draw, decisivePvalue, make, percent, pvalue } from "./dom.js";

const HEIGHT = 260;
const MARGIN = { top: 12, right: 12, bottom: 42, left: 46 };

// Name and format of what the curves show: the probability of a class, or a number in its own unit.
const isNumber = (result) => result.quantity === "number";
const named = (result) => (isNumber(result) ? "predicted number" : `probability of ${result.label}`);
const shown = (result, value, digits = 0) => (isNumber(result) ? value.toFixed(2) : percent(value, digits));

// Return the lowest and the highest value of the chart.
function range(result) {
  if (!isNumber(result)) return [0, 1];
  const values = [result.lower, result.upper, ...Object.values(result.erasures).map(({ probability }) => probability)].flat();
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low < high ? [low, high] : [low - 0.5, high + 0.5];
}

// Return the elements of the measurement. `choose` is called with the method that the user selects.
export function measurement(result, method, width, choose) {
  return [
    doubts(result),
    make(
      "figure",
      {},
      chart(result, method, width),
      make(
        "figcaption",
        { class: "soft" },
        make("span", { class: "key method" }, method),
        make("span", { class: "key others" }, "other methods"),
        make("span", { class: "key random" }, `mean of ${result.orders} random orders, and the range of 90 % of them`),
      ),
    ),
    table(result, method, choose),
    numbers(result),
  ];
}

function doubts(result) {
  const items = result.doubts.map((doubt) => make("li", {}, doubt.text));
  const { mood, text } = result.summary;
  return make("div", { class: mood === "good" ? "callout good" : "callout" }, make("strong", {}, text), ...(items.length ? [make("ul", {}, ...items)] : []));
}

function chart(result, method, width) {
  const inside = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const x = (at) => MARGIN.left + (inside.width * at) / 100;
  const [low, high] = range(result);
  const y = (value) => MARGIN.top + inside.height * (1 - (value - low) / (high - low));
  const line = (values) => values.map((value, step) => `${x(result.percents[step])},${y(value)}`).join(" ");
  const band = `${line(result.upper)} ${result.percents.map((_, i, all) => all.length - 1 - i).map((i) => `${x(result.percents[i])},${y(result.lower[i])}`).join(" ")}`;
  const ordered = Object.keys(result.erasures).filter((name) => name !== method);
  const label = describe(result, method);
  return draw(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": label, class: "chart" },
    ...[0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (high - low)).flatMap((value) => [
      draw("line", { class: "grid", x1: x(0), x2: x(100), y1: y(value), y2: y(value) }),
      draw("text", { x: x(0) - 8, y: y(value) + 4, "text-anchor": "end" }, shown(result, value)),
    ]),
    ...[0, 20, 40, 60, 80, 100].map((at) => draw("text", { x: x(at), y: y(low) + 18, "text-anchor": "middle" }, String(at))),
    draw("text", { x: x(50), y: HEIGHT - 5, "text-anchor": "middle" }, `% erased · ${named(result)}`),
    draw("polygon", { class: "band", points: band }),
    draw("polyline", { class: "mean", points: line(result.mean) }),
    ...ordered.map((name) => draw("polyline", { class: "other", points: line(result.erasures[name].probability) }, draw("title", {}, name))),
    draw("polyline", { class: "selected", points: line(result.erasures[method].probability) }),
    ...result.erasures[method].probability.map((value, step) =>
      draw("circle", { class: "dot", cx: x(result.percents[step]), cy: y(value), r: 3.5 }, draw("title", {}, `${result.percents[step]} % erased: ${shown(result, value, 1)}`)),
    ),
  );
}

const capital = (words) => words[0].toUpperCase() + words.slice(1);

function describe(result, method) {
  const { probability, acu } = result.erasures[method];
  const middle = Math.floor(probability.length / 2);
  const [first, later, random] = [probability[0], probability[middle], result.mean[middle]].map((value) => shown(result, value));
  return `${capital(named(result))} as the text is erased by ${method}: ${first} at first, ${later} at ${result.percents[middle]} % erased, against ${random} at random. Area ${shown(result, acu, 1)}. All numbers are in the table below.`;
}

function table(result, method, choose) {
  const rows = Object.entries(result.erasures)
    .sort(([, a], [, b]) => b.acu - a.acu)
    .map(([name, erasure]) => {
      const pick = make("button", { type: "button", class: "pick", "aria-pressed": String(name === method), onclick: () => choose(name) }, name);
      const p = decisivePvalue(erasure.p);
      const verdict = result.verdicts[name];
      return make(
        "tr",
        { class: name === method ? "chosen" : "" },
        make("th", { scope: "row" }, pick),
        make("td", { class: verdict.mood }, verdict.text),
        make("td", { class: "number" }, shown(result, erasure.acu, 1)),
        make("td", { class: "number" }, erasure.racu === null ? "–" : percent(erasure.racu)),
        make("td", { class: "number" }, percent(erasure.chance)),
        make("td", { class: "number" }, p === undefined ? "–" : pvalue(p)),
      );
    });
  const headings = ["Method", "On this text", "ACU", "RACU", "Random as good", "p"];
  const head = make("tr", {}, ...headings.map((text, i) => make("th", { scope: "col", class: i > 1 ? "number" : "" }, text)));
  const caption = make("caption", { class: "hidden" }, "The methods, most faithful first");
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The methods" }, make("table", { class: "results" }, caption, make("thead", {}, head), make("tbody", {}, ...rows)));
}

function numbers(result) {
  const curves = { ...Object.fromEntries(Object.entries(result.erasures).map(([name, { probability }]) => [name, probability])), "random, mean": result.mean, "random, 5 %": result.lower, "random, 95 %": result.upper };
  const head = make("tr", {}, make("th", { scope: "col" }, "% erased"), ...result.percents.map((at) => make("th", { scope: "col", class: "number" }, String(at))));
  const rows = Object.entries(curves).map(([name, values]) => make("tr", {}, make("th", { scope: "row" }, name), ...values.map((value) => make("td", { class: "number" }, isNumber(result) ? value.toFixed(2) : (100 * value).toFixed(0)))));
  const caption = make("caption", { class: "soft" }, isNumber(result) ? "Predicted number" : `Probability of ${result.label}, in %`);
  return make(
    "details",
    {},
    make("summary", {}, "The numbers of the chart"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The numbers of the chart" }, make("table", { class: "results" }, caption, make("thead", {}, head), make("tbody", {}, ...rows))),
  );
}
