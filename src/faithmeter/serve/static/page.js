// The page: what is typed, masked and chosen → questions to the server → what is shown.

import { ask, model, newest } from "./api.js";
import { byId, make, show } from "./dom.js";
import { measurement } from "./measured.js";
import { showHeat, showMasks, showText, showVerdict } from "./reading.js";

const TYPING = 300; // milliseconds of silence after which a text counts as typed
const DEFAULTS = ["loo-sign", "int-grad-sign", "grad-l2"];

const state = {
  model: null,
  masked: new Set(),
  unit: "words",
  methods: [],
  shown: "",
  whole: null, // the probe without masks
  probe: null,
  explanation: null,
  measured: null,
};

const asked = () => ({ text: byId("text").value, pair: pairAsked() });

function pairAsked() {
  const known = state.model.context;
  const typed = byId("pair").value;
  return typed || known ? typed : null;
}

const probe = newest(async (signal) => {
  const answer = await ask("probe", { ...asked(), masked: [...state.masked] }, { signal });
  state.probe = answer;
  if (!state.masked.size) state.whole = answer;
  return answer;
});

const explain = newest(async (signal) => {
  const body = { ...asked(), methods: state.methods, label: state.whole.prediction };
  state.explanation = await ask("explain", body, { signal, onProgress: () => {} });
  render.heat();
});

const measure = newest(async (signal) => {
  const body = { ...asked(), methods: state.methods, label: state.whole.prediction };
  render.working(true);
  try {
    state.measured = await ask("measure", body, { signal, onProgress: render.progress });
    render.measured();
    byId("announced").textContent = `Measured. Doubts: ${state.measured.doubts.length || "none"}.`;
  } finally {
    render.working(false);
  }
});

// What a person does

function typed() {
  for (const question of [probe, explain, measure]) question.cancel();
  Object.assign(state, { masked: new Set(), whole: null, probe: null, explanation: null, measured: null });
  render.measured();
  const words = byId("text").value.split(/\s+/).filter(Boolean).length;
  const limit = state.model.max_words;
  if (words > limit) {
    render.problem(`The text has ${words} words; this server takes at most ${limit}. Shorten it.`);
    return render.nothing();
  }
  render.problem("");
  return words ? safely(read) : render.nothing();
}

async function read() {
  if (!(await probe())) return;
  showText(state.whole, state.unit, press);
  render.probe();
  await explain();
}

function press(tokens) {
  const all = tokens.every((token) => state.masked.has(token));
  for (const token of tokens) all ? state.masked.delete(token) : state.masked.add(token);
  return masksChanged();
}

function masksChanged() {
  showMasks(state.whole, state.unit, state.masked);
  render.actions();
  return safely(async () => (await probe()) && render.probe());
}

function maskStrongest() {
  const free = state.explanation[state.unit]
    .map((unit, number) => ({ score: unit.scores[state.shown], tokens: state.whole[state.unit][number].tokens }))
    .filter(({ tokens }) => tokens.some((token) => !state.masked.has(token)));
  if (!free.length) return undefined;
  const best = free.reduce((a, b) => (b.score > a.score ? b : a));
  for (const token of best.tokens) state.masked.add(token);
  return masksChanged();
}

function chooseShown(name) {
  state.shown = name;
  for (const input of byId("shown-methods").querySelectorAll("input")) input.checked = input.value === name;
  render.heat();
  render.measured(name);
}

function chooseMethods() {
  const boxes = [...byId("methods").querySelectorAll("input:checked")];
  state.methods = boxes.map((box) => box.value);
  if (!state.methods.includes(state.shown)) state.shown = state.methods[0] ?? "";
  state.measured = null;
  render.methods();
  render.measured();
  render.actions();
  if (!state.whole || !state.methods.length) return undefined;
  return safely(explain);
}

async function safely(work) {
  try {
    render.problem("");
    await work();
  } catch (error) {
    render.problem(error.message);
  }
}

// What is seen

const render = {
  nothing() {
    byId("reading").replaceChildren(make("span", { class: "soft" }, "Your text will stand here, every word a switch."));
    byId("prediction").replaceChildren(make("span", { class: "soft" }, "nothing yet"));
    byId("classes").replaceChildren();
    byId("normal").className = "soft";
    byId("normal").replaceChildren("not known yet");
    byId("count").textContent = "";
    show(byId("legend"), false);
    show(byId("strip"), false);
    this.actions();
  },

  probe() {
    showMasks(state.whole, state.unit, state.masked);
    showVerdict(state.probe, state.whole);
    this.actions();
  },

  heat() {
    show(byId("legend"), Boolean(state.explanation && state.shown));
    showHeat(state.explanation, state.unit, state.shown);
    this.actions();
  },

  actions() {
    byId("unmask").disabled = !state.masked.size;
    byId("strongest").disabled = !(state.explanation && state.shown);
    byId("measure").disabled = !(state.whole && state.methods.length);
  },

  methods() {
    const inputs = state.methods.map((name) => {
      const input = make("input", { type: "radio", name: "shown", value: name, onchange: () => chooseShown(name) });
      input.checked = name === state.shown;
      return make("label", {}, input, make("span", {}, name));
    });
    byId("shown-methods").replaceChildren(...inputs);
    byId("chosen-names").textContent = state.methods.join(", ") || "none";
  },

  measured(focus) {
    const place = byId("measured");
    if (!state.measured) return place.replaceChildren();
    const shown = state.measured.methods[state.shown] ? state.shown : Object.keys(state.measured.methods)[0];
    place.replaceChildren(...measurement(state.measured, shown, place.clientWidth, chooseShown));
    if (focus && document.activeElement === document.body) place.querySelector(".pick[aria-pressed=true]")?.focus();
    return undefined;
  },

  working(yes) {
    show(byId("working"), yes);
    show(byId("cancel"), yes);
    show(byId("measure"), !yes);
    if (yes) byId("progress").value = 0;
  },

  progress({ stage, done, stages, evaluations }) {
    byId("progress").max = stages;
    byId("progress").value = done;
    const said = done ? `${stage} done, ${done} of ${stages}` : stage;
    byId("stage").textContent = `${said} · ${evaluations.toLocaleString("en")} evaluations of the model`;
  },

  problem(text) {
    byId("problem").textContent = text;
    show(byId("problem"), Boolean(text));
  },
};

function describeModel({ name, task, labels, explained, context, version, examples, methods }) {
  byId("model").textContent = [name, task, `${labels.length} classes`].filter(Boolean).join(" · ");
  byId("version").textContent = `faithmeter ${version}`;
  byId("text-hint").textContent = explained ? `the ${explained}` : "";
  byId("pair-hint").textContent = context ? `the ${context}` : "if the model reads two texts";
  show(byId("pair-field"), context !== null || task === null);
  show(byId("examples"), examples.length > 0);
  byId("examples").replaceChildren(
    make("span", { class: "soft" }, "Try "),
    ...examples.map((example) => make("button", { type: "button", class: "example", dir: "auto", onclick: () => take(example) }, shortened(example))),
  );
  byId("methods").replaceChildren(
    ...methods.map((method) => {
      const box = make("input", { type: "checkbox", value: method.name, onchange: chooseMethods });
      box.checked = DEFAULTS.includes(method.name);
      return make("label", {}, box, make("span", {}, make("b", {}, method.name), ` ${method.about}`));
    }),
  );
  state.methods = methods.map((method) => method.name).filter((method) => DEFAULTS.includes(method));
  state.shown = state.methods.includes(DEFAULTS[0]) ? DEFAULTS[0] : state.methods[0];
}

function shortened({ text }) {
  const points = Array.from(text);
  return points.length > 26 ? `${points.slice(0, 25).join("").trimEnd()}…` : text;
}

function take(example) {
  byId("text").value = example.text;
  byId("pair").value = example.pair ?? "";
  return typed();
}

function listen() {
  let pause;
  const later = () => {
    clearTimeout(pause);
    pause = setTimeout(typed, TYPING);
  };
  byId("text").addEventListener("input", later);
  byId("pair").addEventListener("input", later);
  byId("unmask").addEventListener("click", () => {
    state.masked.clear();
    return masksChanged();
  });
  byId("strongest").addEventListener("click", maskStrongest);
  byId("measure").addEventListener("click", () => safely(measure));
  byId("cancel").addEventListener("click", () => measure.cancel());
  byId("units").addEventListener("change", (event) => {
    state.unit = event.target.value;
    if (!state.whole) return;
    showText(state.whole, state.unit, press);
    render.probe();
    render.heat();
  });
  // where the screen is too small for both, what the model says stays in sight below the words
  new IntersectionObserver(([{ isIntersecting }]) => show(byId("strip"), !isIntersecting && Boolean(state.probe))).observe(
    byId("prediction"),
  );
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) render.measured();
    width = contentRect.width;
  }).observe(byId("measured"));
}

await safely(async () => {
  state.model = await model();
  describeModel(state.model);
  render.methods();
  listen();
  if (byId("text").value.trim()) await typed(); // a browser keeps what was typed over a reload
  else if (state.model.examples.length) await take(state.model.examples[0]);
});
