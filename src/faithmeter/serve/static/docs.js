// API documentation, generated from openapi.json; nothing is loaded from other sites.

import { byId, make } from "./dom.js";

const description = await (await fetch("openapi.json")).json();

function schemaOf(holder) {
  const schema = holder?.content?.["application/json"]?.schema;
  return description.components.schemas[schema?.$ref?.split("/").at(-1)] ?? schema;
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  if (schema.additionalProperties) return `object of ${typeOf(schema.additionalProperties)}`;
  return schema.type ?? "any";
}

// Convert text between backticks to code elements.
const prose = (text) => text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));

function fields(title, schema) {
  if (!schema?.properties) return [];
  const rows = Object.entries(schema.properties).map(([name, field]) =>
    make("tr", {}, make("th", { scope: "row" }, make("code", {}, name)), make("td", {}, typeOf(field)), make("td", { class: "soft" }, ...prose(field.description ?? ""))),
  );
  return [make("h3", {}, title), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, make("table", {}, make("tbody", {}, ...rows)))];
}

function example(path, schema) {
  if (!schema?.examples) return [];
  const body = JSON.stringify(schema.examples[0]);
  return [make("pre", { tabindex: "0" }, `curl ${location.origin}${path} -H 'Content-Type: application/json' \\\n  -d '${body}'`)];
}

function operation(path, verb, { summary, requestBody, responses }) {
  const body = schemaOf(requestBody);
  const refusals = Object.entries(responses).filter(([code]) => code !== "200").map(([code, { description: why }]) => `${code}: ${why}`);
  return make(
    "section",
    {},
    make("h2", {}, make("span", { class: "verb" }, verb.toUpperCase()), make("code", {}, path)),
    make("p", {}, summary),
    ...example(path, body),
    ...fields("Request", body),
    ...fields("Response", schemaOf(responses["200"])),
    ...(refusals.length ? [make("p", { class: "soft" }, ...prose(refusals.join(" · ")))] : []),
  );
}

const TYPES = ["Piece", "Unit", "Erasure", "Doubt", "Sentence", "Example", "MethodInfo", "Problem"];
const types = TYPES.map((name) => [name, description.components.schemas[name]]);

byId("docs").append(
  make("section", {}, make("p", {}, ...prose(description.info.description))),
  ...Object.entries(description.paths).flatMap(([path, verbs]) => Object.entries(verbs).map(([verb, what]) => operation(path, verb, what))),
  make("section", {}, make("h2", {}, "Types"), ...types.flatMap(([name, schema]) => fields(name, schema))),
);
