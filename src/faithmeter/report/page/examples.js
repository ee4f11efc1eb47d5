"use strict";
/* Browser of example texts: list, heat map (heat.js) and slider. Its data is gzipped JSON in base 64. */
(async () => {
  const element = (id) => document.getElementById(id);
  const source = element("example-data").textContent;
  if (!source) return;
  const bytes = Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0));
  const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { baseline, levels, significance, stepWarning, groups } = await new Response(json).json();
  const ROWS_AT_A_TIME = 60; /* rows added to the list at a time */
  const list = element("texts");
  const slider = element("erased");

  let group = groups[0];
  let matches = []; /* texts that match the filter */
  let rowCount = 0; /* number of matches that have a row */
  let text = null;
  let method = 0; /* index into group.methods */

  const isRandom = () => group.methods[method].name === baseline;

  /* Return the name of a class, or a number as text. */
  const nameOf = (label) => (group.numbers ? String(Number(label.toFixed(2))) : group.labels[label]);
  /* Return the curve of a text: the probability of its label, or the predicted number. */
  const curveOf = (by) => (group.numbers ? by.predicted : by.probability);

  /* ---- the list ---- */
  function filter() {
    const wanted = element("filter").value.trim().toLocaleLowerCase();
    const content = (one) => `${one.text}\n${one.context ?? ""}\n${nameOf(one.label)}`.toLocaleLowerCase();
    matches = group.texts.filter((one) => content(one).includes(wanted));
    list.replaceChildren();
    list.scrollTop = 0;
    rowCount = 0;
    makeRows(ROWS_AT_A_TIME);
    const some = group.texts.length < group.total ? `the first ${group.texts.length} of ` : "";
    element("count").textContent = `${wanted ? `${matches.length} of ` : ""}${some}${group.total} texts`;
    if (matches.length && !matches.includes(text)) select(matches[0]);
    else mark();
  }

  function makeRows(upTo) {
    const rows = matches.slice(rowCount, upTo).map((one) => {
      const start = Array.from(one.text.slice(0, 400)).slice(0, 160).join("").trim() || "(empty text)";
      const head = `${one.row + 1} · ${nameOf(one.label)}`;
      const row = build("li", [build("small", head), build("span", start, { dir: "auto" })], { id: `text-${one.row}` });
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      row.addEventListener("click", () => select(one));
      return row;
    });
    list.append(...rows);
    rowCount += rows.length;
  }

  function mark() {
    list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    const place = matches.indexOf(text);
    if (place >= rowCount) makeRows(place + ROWS_AT_A_TIME);
    if (place < 0) list.removeAttribute("aria-activedescendant");
    else {
      const row = list.children[place];
      row.setAttribute("aria-selected", "true");
      list.setAttribute("aria-activedescendant", row.id);
      const first = row.offsetTop - list.offsetTop;
      const last = first + row.offsetHeight - list.clientHeight;
      list.scrollTop = Math.min(first, Math.max(last, list.scrollTop)); /* scroll the list, not the page */
    }
    element("previous").disabled = place <= 0;
    element("next").disabled = place < 0 || place >= matches.length - 1;
  }

  const move = (by) => {
    const place = Math.min(matches.length - 1, Math.max(0, matches.indexOf(text) + by));
    if (matches.length) select(matches[place]);
  };

  function select(one) {
    text = one;
    if (!text.by[method]) method = text.by.findIndex(Boolean);
    mark();
    showText();
  }

  /* ---- one text ---- */
  function showText() {
    element("text-title").textContent = `Text ${text.row + 1}, labeled ${nameOf(text.label)}`;
    element("context").textContent = text.context ?? "";
    element("method").querySelectorAll("input").forEach((radio, place) => {
      radio.disabled = !text.by[place];
      radio.checked = place === method;
    });
    showScores();
  }

  /* Return the tokens with the characters before them. Spans count code points, unlike strings in JavaScript. */
  function split() {
    const characters = Array.from(text.text);
    const tokens = [];
    let end = 0;
    let done = 0;
    for (let i = 0; i < text.spans.length; i += 2) {
      const start = end + text.spans[i];
      end = start + text.spans[i + 1];
      const before = characters.slice(done, Math.max(done, start)).join("");
      const own = characters.slice(Math.max(done, start), end).join("");
      tokens.push({ before, own: own || "·" }); /* several tokens may share a character */
      done = Math.max(done, end);
    }
    return { tokens, rest: characters.slice(done).join("") };
  }

  function showScores() {
    const by = text.by[method];
    const { signed, unit } = group.methods[method];
    const { tokens, rest } = split();
    const parts = tokens.flatMap(({ before, own }, i) => {
      const token = build("span", own, { className: "token heat" });
      const share = by.scores[i] / levels;
      if (!isRandom()) {
        heat.paint(token, share, signed);
        token.title = `about ${heat.format(Number((share * by.largest).toPrecision(2)), signed)}`;
      }
      return [before, token];
    });
    const end = text.left ? `… and ${text.left} characters more` : "";
    const unread = { className: rest.trim() ? "unread" : "", title: rest.trim() ? "not read by the model" : "" };
    const whole = tokens.length ? [...parts, build("span", rest + end, unread)] : [text.text || "(empty text)"];
    element("heat").replaceChildren(...whole);
    showLegend(signed);
    const words = by.strongest.map(([word, score]) => `${word} ${heat.format(score, signed)}`).join(", ");
    element("strongest").textContent = isRandom()
      ? "A random order, which says nothing about the text: methods are compared with it."
      : `Strongest${unit ? `, in ${unit}` : ""}: ${words || "none"}`;
    step();
  }

  function showLegend(signed) {
    const label = group.labels[group.numbers ? text.side : text.label];
    element("for").textContent = `for ${label}`;
    element("against").textContent = `against ${label}`;
    element("for").hidden = element("against").hidden = isRandom() || !signed;
    element("important").hidden = isRandom() || signed;
    element("again").hidden = isRandom();
  }

  function step() {
    const by = text.by[method];
    const now = Number(slider.value);
    const percent = group.percents[now];
    const tokens = [...element("heat").querySelectorAll(".token")];
    tokens.forEach((token, i) => token.classList.toggle("masked", by.masked[i] <= now));
    const count = by.masked.filter((place) => place <= now).length;
    element("spoken").textContent = [...element("heat").childNodes]
      .map((node) => (node.classList?.contains("masked") ? "[mask]" : node.textContent))
      .join("");
    slider.setAttribute("aria-valuetext", `${percent} % erased, ${count} of ${tokens.length} tokens masked`);
    element("percent").textContent = `${percent} %`;
    element("prediction").textContent = nameOf(by.predicted[now]);
    const right = by.predicted[now] === text.label ? "✓ as labeled" : "✕ not the label";
    element("right").textContent = group.numbers ? `labeled ${nameOf(text.label)}` : right;
    element("probability").parentNode.hidden = group.numbers;
    if (!group.numbers) element("probability").textContent = by.probability[now].toFixed(3);
    showPValues(by, now);
    drawCurve(now);
  }

  function showPValues(by, now) {
    const format = (p) => (p < 0.001 ? "< 0.001" : p.toFixed(3));
    const foreign = by.p_crossfit?.[now] < significance;
    const warning = foreign ? `: ${stepWarning}` : "";
    element("pvalue").textContent = by.p_crossfit ? format(by.p_crossfit[now]) + warning : "not tested";
    element("pvalue").parentNode.classList.toggle("bad", foreign);
    element("published").textContent = by.p_published ? `published test: ${format(by.p_published[now])}` : "";
  }

  /* ---- the curve of this text ---- */
  function drawCurve(now) {
    const width = Math.min(576, element("curve").clientWidth || 300);
    const height = 160, left = 34, right = 20, bottom = 26, head = 10;
    const shape = (tag, attributes, content = "") => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
      node.append(...[content].flat());
      return node;
    };
    const x = (percent) => left + ((width - left - right) * percent) / 100;
    const random = isRandom() ? null : text.by[group.methods.findIndex(({ name }) => name === baseline)];
    const all = group.numbers ? [text.by[method], random].filter(Boolean).flatMap(curveOf) : [0, 1];
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const y = (value) => head + (height - head - bottom) * (1 - (value - low) / (high - low || 1));
    const points = (by) =>
      curveOf(by).map((value, i) => `${x(group.percents[i]).toFixed(1)},${y(value).toFixed(1)}`);
    const parts = [low, (low + high) / 2, high].flatMap((value) => [
      shape("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      shape("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toFixed(2)))),
    ]);
    for (const percent of [0, 25, 50, 75, 100]) {
      parts.push(shape("text", { x: x(percent), y: height - 8, "text-anchor": "middle" }, `${percent} %`));
    }
    const own = text.by[method];
    if (random) parts.push(shape("polyline", { class: "random", points: points(random).join(" ") }));
    parts.push(shape("polyline", { points: points(own).join(" ") }));
    const [cx, cy] = points(own)[now].split(",");
    parts.push(shape("circle", { cx, cy, r: 5 }));
    const dashed = random ? "; dashed: one random order" : "";
    const by = isRandom() ? "a random order" : group.methods[method].name;
    const title = `${group.numbers ? "Predicted number" : "Probability of the label"} as tokens are erased by ${by}${dashed}`;
    element("curve-title").textContent = title;
    element("curve").replaceChildren(shape("svg", { width, height, role: "img", "aria-label": title }, parts));
  }

  /* ---- choices ---- */
  function chooseGroup(number) {
    group = groups[number];
    text = null;
    method = 0;
    slider.max = group.percents.length - 1;
    slider.value = 0;
    const radios = group.methods.map(({ name }, place) => {
      const radio = build("input", [], { type: "radio", name: "method", value: name });
      radio.addEventListener("change", () => {
        method = place;
        showScores();
      });
      return build("label", [radio, name]);
    });
    element("method").replaceChildren(element("method").querySelector("legend"), ...radios);
    filter();
  }

  const KEYS = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, End: Infinity, Home: -Infinity };
  list.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS)) return;
    event.preventDefault();
    move(KEYS[event.key]);
    list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });
  list.addEventListener("scroll", () => {
    if (list.scrollTop + 2 * list.clientHeight > list.scrollHeight) makeRows(rowCount + ROWS_AT_A_TIME);
  });
  element("filter").addEventListener("input", filter);
  element("previous").addEventListener("click", () => move(-1));
  element("next").addEventListener("click", () => move(1));
  slider.addEventListener("input", step);
  const options = groups.map((one, value) => build("option", `${one.task}, ${one.model}`, { value }));
  element("group").append(...options);
  element("group-label").hidden = groups.length < 2;
  element("group").addEventListener("change", (event) => chooseGroup(Number(event.target.value)));
  chooseGroup(0);
})();
