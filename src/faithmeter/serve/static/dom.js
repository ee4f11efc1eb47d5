// Elements are built without markup: all content is inserted as text, so user input cannot become code.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

export const pvalue = (p) => (p < 0.001 ? "< 0.001" : p.toFixed(p < 0.1 ? 3 : 2));

// Format a p-value like `formats.format_pvalue`.
export const equalsP = (p) => (p < 0.001 ? "p < 0.001" : `p = ${pvalue(p)}`);

// Return the p-value of the test that `trust.choose_test` chooses; undefined without tests.
export const decisivePvalue = (byTest) => byTest.crossfit ?? Object.values(byTest)[0];

export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export function show(element, visible) {
  element.hidden = !visible;
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") element.toggleAttribute(name, value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
