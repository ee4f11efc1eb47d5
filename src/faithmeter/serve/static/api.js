// The server's JSON API: an answer, or lines of progress with the answer in the last one.

const STREAM = "application/x-ndjson";

export async function model() {
  return read(await fetch("api/model"));
}

export async function ask(what, body, { signal, onProgress } = {}) {
  const response = await fetch(`api/${what}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: onProgress ? STREAM : "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  if (!onProgress || !response.ok) return read(response);
  for await (const line of lines(response.body)) {
    if (line.error !== undefined) throw new Error(line.error);
    if (line.result !== undefined) return line.result;
    onProgress(line);
  }
  throw new Error("the answer broke off; ask again");
}

// A function that asks and forgets what it asked before: only the newest question is answered.
export function newest(work) {
  let current = null;
  const run = async (...given) => {
    current?.abort();
    const mine = (current = new AbortController());
    try {
      return await work(mine.signal, ...given);
    } catch (error) {
      if (mine.signal.aborted) return undefined;
      throw error;
    } finally {
      if (current === mine) current = null;
    }
  };
  run.cancel = () => current?.abort();
  return run;
}

async function read(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.detail ?? `the server answered with ${response.status}`);
  return body;
}

async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part);
  }
}
