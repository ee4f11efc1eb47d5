// The live page: sends the text to the server and displays the results.

import { ask, model, newest, Refusal } from "./api.js";
import { byId, make, show } from "./dom.js";
import { measurement } from "./measurement.js";
import { describeModel } from "./model.js";
import { showHeat, showMasks, showText, showVerdict } from "./reading.js";

const UNIT = { words: "word", tokens: "token" }; // names of the API, by those of the lists in its answers
const TYPING = 300; // the text is sent after this many milliseconds without a key press
const NEXT_FOCUS = { explain: ["explain-cancel"], "explain-cancel": ["explain", "reading"], measure: ["measure-cancel"], "measure-cancel": ["measure"] };

// State of a text without results
const nothing = () => ({
  masked: new Set(),
  whole: null, // probe without masks
  probe: null,
  explained: {}, // explanation by method
  refused: {}, // reason for a missing explanation, by method
  measured: null,
});

const state = { model: null, unit: "words", methods: [], method: "loo-sign", working: {}, ...nothing() };

const missing = () => state.methods.filter((name) => !(name in state.explained) && !(name in state.refused));
const measurable = () => state.methods.filter((name) => !(name in state.refused));

const textFields = () => ({ text: byId("text").value, pair: pairField() });

function pairField() {
  const known = state.model.context;
  const typed = byId("pair").value;
  return typed || known ? typed : null;
}

// Without a class, the server explains what raises a positive number, and what lowers a negative one.
const predictedClass = () => (state.whole.value === null ? state.whole.prediction : null);

const probe = newest(async (signal) => {
  const answer = await ask("probe", { ...textFields(), masked: [...state.masked] }, { signal });
  state.probe = answer;
  if (!state.masked.size) state.whole = answer;
  return answer;
});

const explain = newest(async (signal) => {
  for (const name of missing().sort((a, b) => (b === state.method) - (a === state.method))) {
    const body = { ...textFields(), methods: [name], label: predictedClass(), unit: UNIT[state.unit] };
    const onProgress = (line) => render.progress("explain", `explaining by ${name}`, line);
    try {
      state.explained[name] = await ask("explain", body, { signal, onProgress });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      state.refused[name] = error.message;
    }
    render.heat();
  }
}, working("explain"));

const measure = newest(async (signal) => {
  const body = { ...textFields(), methods: measurable(), label: predictedClass(), unit: UNIT[state.unit] };
  const onProgress = (line) => render.progress("measure", line.done ? `${line.stage} done, ${line.done} of ${line.stages}` : line.stage, line);
  state.measured = await ask("measure", body, { signal, onProgress });
  render.measured();
  byId("announced").textContent = `Measured. Doubts: ${state.measured.doubts.length || "none"}.`;
}, working("measure"));

function working(name) {
  return (busy) => {
    state.working[name] = busy;
    render.actions();
  };
}

// Actions

function changed() {
  for (const question of [probe, explain, measure]) question.cancel();
  Object.assign(state, nothing());
  byId("reading").inert = true;
  render.problem("");
  render.problem("", "unmeasured");
  render.heat();
  render.measured();
}

function typed() {
  const words = byId("text").value.split(/\s+/).filter(Boolean).length;
  const limit = state.model.max_words;
  if (words > limit) render.problem(`The text has ${words} words; this server takes at most ${limit}. Shorten it.`);
  return words && words <= limit ? safely(read) : render.nothing();
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
  const free = state.explained[state.method][state.unit]
    .map((unit, number) => ({ score: unit.scores[state.method], tokens: state.whole[state.unit][number].tokens }))
    .filter(({ tokens }) => tokens.some((token) => !state.masked.has(token)));
  if (!free.length) return undefined;
  const best = free.reduce((a, b) => (b.score > a.score ? b : a));
  for (const token of best.tokens) state.masked.add(token);
  return masksChanged();
}

function chooseMethod(name) {
  state.method = name;
  for (const input of byId("method-tabs").querySelectorAll("input")) input.checked = input.value === name;
  render.heat();
  render.measured(name);
}

function chooseMethods() {
  const boxes = [...byId("methods").querySelectorAll("input:checked")];
  state.methods = boxes.map((box) => box.value);
  if (!state.methods.includes(state.method)) state.method = state.methods[0] ?? "";
  state.measured = null;
  measure.cancel();
  render.methods();
  render.heat();
  render.measured();
  return state.whole ? safely(explain) : undefined;
}

async function safely(work, place = "problem") {
  try {
    render.problem("", place);
    await work();
  } catch (error) {
    render.problem(error.message, place);
    if (!state.whole) render.nothing();
  }
}

// Display

const render = {
  nothing() {
    byId("reading").inert = false;
    byId("reading").replaceChildren(make("span", { class: "soft" }, "Your text appears here; click a word to mask it."));
    byId("prediction").replaceChildren(make("span", { class: "soft" }, "nothing yet"));
    byId("classes").replaceChildren();
    byId("normal").className = "soft";
    byId("normal").replaceChildren("not known yet");
    show(byId("normal-details"), false);
    byId("count").textContent = "";
    show(byId("strip"), false);
    this.actions();
  },

  probe() {
    showMasks(state.whole, state.unit, state.masked);
    showVerdict(state.probe, state.whole);
    this.actions();
  },

  heat() {
    showHeat(state.explained[state.method], state.unit, state.model.methods.find(({ name }) => name === state.method));
    const refused = state.methods.filter((name) => name in state.refused);
    byId("refusals").replaceChildren(...refused.map((name) => make("li", {}, make("b", {}, name), `: ${state.refused[name]}`)));
    show(byId("refusals"), refused.length > 0);
    this.actions();
  },

  actions() {
    const had = document.activeElement;
    const { explain: explaining, measure: measuring } = state.working;
    const unexplained = state.whole && missing().length;
    byId("unmask").disabled = !state.masked.size;
    byId("strongest").disabled = !state.explained[state.method];
    byId("measure").disabled = !(state.whole && measurable().length);
    show(byId("explain"), unexplained && !explaining);
    show(byId("explain-working"), unexplained && explaining);
    show(byId("measure"), !measuring);
    for (const id of ["measure-working", "measure-cancel"]) show(byId(id), measuring);
    if (had?.closest("[hidden]")) NEXT_FOCUS[had.id]?.map(byId).find((element) => !element.closest("[hidden]"))?.focus();
  },

  methods() {
    const inputs = state.methods.map((name) => {
      const input = make("input", { type: "radio", name: "method", value: name, onchange: () => chooseMethod(name) });
      input.checked = name === state.method;
      return make("label", {}, input, make("span", {}, name));
    });
    byId("method-tabs").replaceChildren(...inputs);
    byId("chosen-names").textContent = state.methods.join(", ") || "none";
  },

  measured(focus) {
    const place = byId("measured");
    show(byId("glossary"), state.measured);
    if (!state.measured) return place.replaceChildren();
    const method = state.measured.erasures[state.method] ? state.method : Object.keys(state.measured.erasures)[0];
    place.replaceChildren(...measurement(state.measured, method, place.clientWidth, chooseMethod));
    if (focus && document.activeElement === document.body) place.querySelector(".pick[aria-pressed=true]")?.focus();
    return undefined;
  },

  progress(name, stage, { evaluations, max_evaluations }) {
    byId(`${name}-bar`).max = max_evaluations;
    byId(`${name}-bar`).value = evaluations;
    const [count, limit] = [evaluations, max_evaluations].map((number) => number.toLocaleString("en"));
    byId(`${name}-stage`).textContent = `${stage} · ${count} of at most ${limit} evaluations of the model`;
  },

  problem(text, place = "problem") {
    byId(place).textContent = text;
    show(byId(place), text);
  },
};

function take(example) {
  byId("text").value = example.text;
  byId("pair").value = example.pair ?? "";
  changed();
  return typed();
}

function listen() {
  let pause;
  const later = () => {
    clearTimeout(pause);
    changed();
    pause = setTimeout(typed, TYPING);
  };
  byId("text").addEventListener("input", later);
  byId("pair").addEventListener("input", later);
  byId("unmask").addEventListener("click", () => {
    state.masked.clear();
    return masksChanged();
  });
  byId("strongest").addEventListener("click", maskStrongest);
  byId("measure").addEventListener("click", () => safely(measure, "unmeasured"));
  byId("measure-cancel").addEventListener("click", () => measure.cancel());
  byId("explain").addEventListener("click", () => safely(explain));
  byId("explain-cancel").addEventListener("click", () => explain.cancel());
  byId("units").addEventListener("change", (event) => {
    state.unit = event.target.value;
    for (const question of [explain, measure]) question.cancel();
    Object.assign(state, { explained: {}, refused: {}, measured: null });
    render.measured();
    if (!state.whole) return undefined;
    showText(state.whole, state.unit, press);
    render.probe();
    render.heat();
    return safely(explain);
  });
  // on small screens the prediction stays visible below the words
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
  describeModel(state.model, take, chooseMethods);
  chooseMethods();
  listen();
  if (byId("text").value.trim()) await typed(); // browsers keep the text when the page is reloaded
  else if (state.model.examples.length) await take(state.model.examples[0]);
});
