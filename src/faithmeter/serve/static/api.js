// Client of the JSON API. Responses are JSON, or lines of progress that end with the result.

const STREAM = "application/x-ndjson";
const SILENT = "The server does not answer. Start it again with faithmeter serve, then continue.";

// Error with the message of a server that refuses a request.
export class Refusal extends Error {}

export async function model() {
  return read(await reached(fetch("api/model")));
}

export async function ask(what, body, { signal, onProgress } = {}) {
  const asking = fetch(`api/${what}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: onProgress ? STREAM : "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  const response = await reached(asking);
  if (!onProgress || !response.ok) return read(response);
  for await (const line of lines(response.body)) {
    if (line.error !== undefined) throw new Refusal(line.error);
    if (line.result !== undefined) return line.result;
    onProgress(line);
  }
  throw new Error("the response is incomplete; try again");
}

// Return a function whose calls cancel the previous call, which then returns undefined. `busy` is called with true
// when work begins, and with false when no call is running.
export function newest(work, busy = () => {}) {
  let current = null;
  const run = async (...given) => {
    current?.abort();
    const mine = (current = new AbortController());
    busy(true);
    try {
      return await work(mine.signal, ...given);
    } catch (error) {
      if (mine.signal.aborted) return undefined;
      throw error;
    } finally {
      if (current === mine) {
        current = null;
        busy(false);
      }
    }
  };
  run.cancel = () => current?.abort();
  return run;
}

async function read(response) {
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  const detail = body.detail ?? `the server answered with ${response.status}`;
  throw response.status === 422 ? new Refusal(detail) : new Error(detail);
}

// Replace the TypeError that browsers raise if the server is unreachable or stops by a helpful message.
function reached(promise) {
  return promise.catch((error) => {
    throw error instanceof TypeError ? new Error(SILENT) : error;
  });
}

async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reached(reader.read());
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part);
  }
}
