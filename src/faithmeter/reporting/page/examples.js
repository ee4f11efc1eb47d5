"use strict";
/* The browser of example texts: list, heat-map, slider */
(() => {
  const source = document.getElementById("example-data").textContent;
  if (!source) return;
  const { alphabet, top, half, baseline, groups } = JSON.parse(source);
  const element = (id) => document.getElementById(id);
  const digit = new Map([...alphabet].map((letter, place) => [letter, place]));
  const CHUNK = 60; /* rows of the list made at a time */
  const FAINT = 0.1; /* scores below this share of the strongest stay uncolored */
  const ALPHA = 0.05;
  const list = element("texts");
  const slider = element("erased");

  let group = groups[0];
  let shown = []; /* the texts that pass the filter */
  let made = 0; /* how many of them have a row */
  let text = null;
  let method = 0;

  const numbers = (letters, width) => {
    const found = [];
    for (let i = 0; i < letters.length; i += width) {
      let number = 0;
      for (let j = 0; j < width; j++) number = number * 64 + digit.get(letters[i + j]);
      found.push(number);
    }
    return found;
  };
  const shares = (letters) => numbers(letters, 2).map((level) => level / top);
  const signed = (value, digits = 3) =>
    (value < 0 ? "−" : value > 0 ? "+" : "") + Number(Math.abs(value).toPrecision(digits));

  /* ---- the list ---- */
  function filter() {
    const wanted = element("filter").value.trim().toLocaleLowerCase();
    const said = (one) => `${one.text}\n${one.context ?? ""}\n${group.labels[one.label]}`.toLocaleLowerCase();
    shown = group.texts.filter((one) => said(one).includes(wanted));
    list.replaceChildren();
    list.scrollTop = 0;
    made = 0;
    makeRows(CHUNK);
    const some = group.texts.length < group.total ? `the first ${group.texts.length} of ` : "";
    element("count").textContent = `${wanted ? `${shown.length} of ` : ""}${some}${group.total} texts`;
    if (shown.length && !shown.includes(text)) select(shown[0]);
    else mark();
  }

  function makeRows(upTo) {
    const rows = shown.slice(made, upTo).map((one) => {
      const start = Array.from(one.text.slice(0, 400)).slice(0, 160).join("").trim() || "(empty text)";
      const head = `${one.row + 1} · ${group.labels[one.label]}`;
      const parts = [build("small", head), build("span", start, { dir: "auto" })];
      const row = build("li", parts, { id: `text-${one.row}` });
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      row.addEventListener("click", () => select(one));
      return row;
    });
    list.append(...rows);
    made += rows.length;
  }

  function mark() {
    list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    const place = shown.indexOf(text);
    if (place >= made) makeRows(place + CHUNK);
    if (place < 0) list.removeAttribute("aria-activedescendant");
    else {
      const row = list.children[place];
      row.setAttribute("aria-selected", "true");
      list.setAttribute("aria-activedescendant", row.id);
      const first = row.offsetTop - list.offsetTop;
      const last = first + row.offsetHeight - list.clientHeight;
      list.scrollTop = Math.min(first, Math.max(last, list.scrollTop)); /* only the list, not the page */
    }
    element("previous").disabled = place <= 0;
    element("next").disabled = place < 0 || place >= shown.length - 1;
  }

  const move = (by) => {
    const place = Math.min(shown.length - 1, Math.max(0, shown.indexOf(text) + by));
    if (shown.length) select(shown[place]);
  };

  function select(one) {
    text = one;
    if (!text.by[method]) method = text.by.findIndex(Boolean);
    mark();
    showText();
  }

  /* ---- one text ---- */
  function showText() {
    element("text-title").textContent = `Text ${text.row + 1}, labeled ${group.labels[text.label]}`;
    element("context").textContent = text.context ?? "";
    element("method").querySelectorAll("input").forEach((radio, place) => {
      radio.disabled = !text.by[place];
      radio.checked = place === method;
    });
    showScores();
  }

  /* Spans count characters, not the halves that JavaScript makes of an emoji. */
  function pieces() {
    const characters = Array.from(text.text);
    const found = [];
    let end = 0;
    let drawn = 0;
    for (let i = 0; i < text.spans.length; i += 2) {
      const start = end + text.spans[i];
      end = start + text.spans[i + 1];
      const before = characters.slice(drawn, Math.max(drawn, start)).join("");
      const own = characters.slice(Math.max(drawn, start), end).join("");
      found.push({ before, own: own || "·" }); /* several tokens may share a character */
      drawn = Math.max(drawn, end);
    }
    return { tokens: found, rest: characters.slice(drawn).join("") };
  }

  function showScores() {
    const by = text.by[method];
    const random = group.methods[method] === baseline;
    const scores = numbers(by.scores, 1).map((level) => level / half - 1);
    const { tokens, rest } = pieces();
    const parts = tokens.flatMap(({ before, own }, i) => {
      const token = build("span", build("span", own), { className: "token" });
      if (!random) token.title = `about ${signed(scores[i] * by.most, 2)}`; /* as exact as a color */
      if (!random && Math.abs(scores[i]) >= FAINT) {
        token.classList.add(scores[i] > 0 ? "for" : "against");
        token.style.setProperty("--share", Math.abs(scores[i]).toFixed(3));
      }
      return [before, token];
    });
    const end = text.left ? `… and ${text.left} characters more` : "";
    const unread = { className: rest.trim() ? "unread" : "", title: rest.trim() ? "not read by the model" : "" };
    const whole = tokens.length ? [...parts, build("span", rest + end, unread)] : [text.text || "(empty text)"];
    element("heat").replaceChildren(...whole);
    element("for").textContent = group.signed[method] ? "speaks for the label" : "important";
    element("for").hidden = random;
    element("against").hidden = random || !group.signed[method];
    element("again").hidden = random;
    const words = by.strongest.map(([word, score]) => `${word} ${signed(score)}`).join(", ");
    element("strongest").textContent = random
      ? "A random order, which says nothing about the text: methods are held against it."
      : `Strongest: ${words || "none"}`;
    step();
  }

  function step() {
    const by = text.by[method];
    const now = Number(slider.value);
    const percent = group.percents[now];
    const first = numbers(by.masked, 1);
    const tokens = [...element("heat").querySelectorAll(".token")];
    tokens.forEach((token, i) => token.classList.toggle("masked", first[i] <= now));
    const gone = first.filter((place) => place <= now).length;
    element("spoken").textContent = [...element("heat").childNodes]
      .map((node) => (node.classList?.contains("masked") ? "[mask]" : node.textContent))
      .join("");
    slider.setAttribute("aria-valuetext", `${percent} % erased, ${gone} of ${tokens.length} tokens masked`);
    element("percent").textContent = `${percent} %`;
    const predicted = numbers(by.predicted, 2)[now];
    const right = predicted === text.label;
    element("prediction").textContent = group.labels[predicted];
    element("right").textContent = right ? "✓ as labeled" : "✕ not the label";
    element("chance").textContent = shares(by.chance)[now].toFixed(3);
    const p = (letters) => (letters ? shares(letters)[now] : NaN);
    const written = (value) => (value < 0.001 ? "< 0.001" : value.toFixed(3));
    const strange = p(by.p_crossfit) < ALPHA;
    const warning = strange ? ": do not trust this step" : "";
    element("pvalue").textContent = by.p_crossfit ? written(p(by.p_crossfit)) + warning : "not tested";
    element("pvalue").parentNode.classList.toggle("bad", strange);
    element("published").textContent = by.p_published ? `published test: ${written(p(by.p_published))}` : "";
    curve(now);
  }

  /* ---- the curve of this text ---- */
  function curve(now) {
    const width = Math.min(576, element("curve").clientWidth || 300);
    const height = 160, left = 34, right = 20, bottom = 26, head = 10;
    const make = (tag, attributes, content = "") => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.append(...[content].flat());
      return made;
    };
    const x = (percent) => left + ((width - left - right) * percent) / 100;
    const y = (chance) => head + (height - head - bottom) * (1 - chance);
    const points = (by) =>
      shares(by.chance).map((chance, i) => `${x(group.percents[i]).toFixed(1)},${y(chance).toFixed(1)}`);
    const parts = [0, 0.5, 1].flatMap((chance) => [
      make("line", { class: "axis", x1: left, x2: width - right, y1: y(chance), y2: y(chance) }),
      make("text", { x: left - 6, y: y(chance) + 4, "text-anchor": "end" }, String(chance)),
    ]);
    for (const percent of [0, 25, 50, 75, 100]) {
      parts.push(make("text", { x: x(percent), y: height - 8, "text-anchor": "middle" }, `${percent} %`));
    }
    const own = text.by[method];
    const other = text.by[group.methods.indexOf(baseline)];
    const random = other === own ? null : other;
    if (random) parts.push(make("polyline", { class: "random", points: points(random).join(" ") }));
    parts.push(make("polyline", { points: points(own).join(" ") }));
    const [cx, cy] = points(own)[now].split(",");
    parts.push(make("circle", { cx, cy, r: 5 }));
    const dashed = random ? "; dashed: one random order" : "";
    const by = other === own ? "a random order" : group.methods[method];
    const title = `Probability of the label as tokens are erased by ${by}${dashed}`;
    element("curve-title").textContent = title;
    element("curve").replaceChildren(make("svg", { width, height, role: "img", "aria-label": title }, parts));
  }

  /* ---- choices ---- */
  function chooseGroup(number) {
    group = groups[number];
    text = null;
    method = 0;
    slider.max = group.percents.length - 1;
    slider.value = 0;
    const radios = group.methods.map((name, place) => {
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
    if (list.scrollTop + 2 * list.clientHeight > list.scrollHeight) makeRows(made + CHUNK);
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
