// Display of the text as buttons that mask words, its heat map (heat.js), and the prediction.

/* global heat */

import { byId, equalsP, decisivePvalue, make, percent, show } from "./dom.js";

const PUNCTUATION = /^\p{P}+$/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;

// Display the words in their original layout, or the tokens in a row. `press` is called with the tokens of a unit.
export function showText(probe, unit, press) {
  const points = Array.from(probe.text); // positions are counted in code points
  const parts = [];
  let before = 0;
  for (const piece of probe[unit]) {
    const between = unit === "words" ? points.slice(before, piece.start).join("") : parts.length ? " " : "";
    if (between === "" && PUNCTUATION.test(piece.text) && parts.length) parts.push(together(parts.pop(), button(piece, press)));
    else parts.push(between, button(piece, press));
    before = Math.max(before, piece.end);
  }
  if (unit === "words") parts.push(points.slice(before).join(""));
  byId("reading").inert = false;
  byId("reading").dir = getComputedStyle(byId("text")).direction; // the direction that the browser detects for the field
  byId("reading").replaceChildren(...(RIGHT_TO_LEFT.test(probe.text) ? parts.flatMap(directed) : parts));
}

function button(piece, press) {
  const attributes = { type: "button", class: "word heat", "aria-pressed": "false", onclick: () => press(piece.tokens) };
  return make("button", attributes, make("bdi", {}, piece.text));
}

// Add direction marks around a button, which keep the words of a text in mixed directions in order.
function directed(part) {
  if (typeof part === "string" || !/\p{L}/u.test(part.textContent)) return [part];
  const mark = RIGHT_TO_LEFT.test(part.textContent) ? "\u200f" : "\u200e";
  return [mark, part, mark];
}

// Keep punctuation on the line of its word.
const together = (word, mark) => make("span", { class: "together" }, word, mark);

export function showMasks(probe, unit, masked) {
  const buttons = byId("reading").querySelectorAll(".word");
  probe[unit].forEach((piece, number) => {
    const gone = piece.tokens.filter((token) => masked.has(token)).length;
    const pressed = gone === 0 ? "false" : gone === piece.tokens.length ? "true" : "mixed";
    buttons[number].setAttribute("aria-pressed", pressed);
  });
  byId("count").textContent = masked.size
    ? `${masked.size} of ${probe.tokens.length} tokens masked`
    : probe.truncated
      ? "longer than the model can read: the end was left out"
      : "";
}

// Color the words by the scores of `method`, or remove the colors if there is no explanation.
export function showHeat(explanation, unit, method) {
  const units = explanation ? explanation[unit] : [];
  const score = (piece) => piece.scores[method.name];
  const strongest = Math.max(...units.map((piece) => Math.abs(score(piece))), 0) || 1;
  byId("reading").querySelectorAll(".word").forEach((button, number) => {
    const share = units[number] ? score(units[number]) / strongest : 0;
    const tone = heat.paint(button, share, method?.signed);
    if (tone) button.title = `${heat.format(score(units[number]), method.signed)} ${tone}${method.signed ? ` ${explanation.label}` : ""}`;
    else button.removeAttribute("title");
  });
  show(byId("legend"), units.length > 0);
  if (!units.length) return;
  for (const sample of byId("legend").querySelectorAll(".sample")) show(sample, sample.matches(".important") !== method.signed);
  for (const name of byId("legend").querySelectorAll(".class-name")) name.textContent = explanation.label;
  const words = heat.strongest(units.map(score)).map((number) => `${units[number].text} ${heat.format(score(units[number]), method.signed)}`);
  byId("top-words").textContent = `strongest: ${words.join(", ")}`;
}

export function showVerdict(probe, whole) {
  const parts = [make("strong", {}, probe.prediction), certainty(probe)];
  if (probe.masked.length) parts.push(make("span", { class: "soft was" }, `unmasked: ${whole.prediction}${certainty(whole)}`));
  byId("prediction").replaceChildren(...parts);
  byId("classes").replaceChildren(...(probe.value === null ? [classes(probe, whole)] : []));
  showNormal(probe);
  byId("strip-prediction").textContent = `${probe.prediction}${certainty(probe)}`;
  byId("strip-known").textContent = `known to the model: ${probe.verdict.text.split(/[,:.]/)[0]}`;
}

// Probability of the predicted class; a predicted number has none.
const certainty = (probe) => (probe.value === null ? ` ${percent(probe.probabilities[probe.prediction], 1)}` : "");

function classes(probe, whole) {
  const rows = Object.entries(probe.probabilities).map(([name, share]) => {
    const bar = make("span", { class: "fill" });
    bar.style.setProperty("--share", share);
    const was = make("span", { class: "was-tick" });
    was.style.setProperty("--share", whole.probabilities[name]);
    const track = make("span", { class: "track", "aria-hidden": "true" }, bar, ...(probe.masked.length ? [was] : []));
    const attributes = name === probe.prediction ? { class: "chosen" } : {};
    return make(
      "tr",
      attributes,
      make("th", { scope: "row" }, name),
      make("td", { class: "bar-cell" }, track),
      make("td", { class: "number" }, percent(share, 1)),
    );
  });
  const caption = make("caption", { class: "hidden" }, "Probability of each class");
  return make("table", { class: "classes" }, caption, make("tbody", {}, ...rows));
}

function showNormal(probe) {
  const { mood, text } = probe.verdict;
  byId("normal").className = { good: "", caution: "soft", bad: "callout" }[mood];
  byId("normal").replaceChildren(text);
  const p = decisivePvalue(probe.pvalues);
  show(byId("normal-details"), p !== undefined);
  const others = Object.entries(probe.pvalues).filter(([name]) => name !== "crossfit");
  byId("p").textContent = p === undefined ? "" : equalsP(p);
  byId("rest").textContent = others.map(([name, value]) => `test as ${name}: ${equalsP(value)}`).join(", ");
}
