// Description of the served model: its name, inputs, example texts and methods.

import { byId, make, show } from "./dom.js";

const TITLE = 34; // maximum number of characters in the title of an example
const CHECKED = ["loo-sign", "int-grad-sign", "grad-l2"];

// Fill in the description. `take` is called with a chosen example, `choose` when the checked methods change.
export function describeModel({ name, task, labels, predicts_number, explained, context, version, examples, methods }, take, choose) {
  byId("model").textContent = [name, task, predicts_number ? "predicts a number" : `${labels.length} classes`].filter(Boolean).join(" · ");
  byId("version").textContent = `faithmeter ${version}`;
  byId("text-hint").textContent = explained ? `the ${explained}` : "";
  byId("pair-hint").textContent = context ? `the ${context}` : "if the model reads two texts";
  show(byId("pair-field"), context !== null || task === null);
  show(byId("examples"), examples.length);
  byId("examples").replaceChildren(make("span", { class: "soft" }, "Try "), ...examples.map((example) => exampleButton(example, take)));
  byId("methods").replaceChildren(
    ...methods.map((method) => {
      const box = make("input", { type: "checkbox", value: method.name, checked: CHECKED.includes(method.name), onchange: choose });
      return make("label", {}, box, make("span", {}, make("b", {}, method.name), ` ${method.about}`));
    }),
  );
}

// Return a button titled by class and context, because texts of a task often begin alike.
function exampleButton(example, take) {
  const { text, pair, label } = example;
  const points = Array.from([label, pair || text].filter(Boolean).join(" · "));
  const title = points.length > TITLE ? `${points.slice(0, TITLE - 1).join("").trimEnd()}…` : points.join("");
  return make("button", { type: "button", class: "pill example", dir: "auto", title: text, onclick: () => take(example) }, title);
}
