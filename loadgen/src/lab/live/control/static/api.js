// The lab's answers. What is refused is thrown as an Error with the one line that says why.

const DEADLINE_MS = 20_000;
// What is now is known within this time, or not at all.
const LIVE_DEADLINE_MS = 5_000;

async function ask(method, path, body, deadlineMs = DEADLINE_MS) {
  const change = method === "GET" ? {} : { "Content-Type": "application/json", "Lab-Control": "1" };
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: change,
      body: method === "GET" ? undefined : JSON.stringify(body ?? {}),
      signal: AbortSignal.timeout(deadlineMs),
      cache: "no-store",
    });
  } catch {
    throw new Error("the lab does not answer: is it up?");
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.error ?? `${method} ${path}: ${answer.status}`);
  return told;
}

export const info = () => ask("GET", "/api/info");
export const live = () => ask("GET", "/api/live", undefined, LIVE_DEADLINE_MS);
export const servers = () => ask("GET", "/api/servers");
export const turn = (server, knobs) =>
  ask("PATCH", `/api/servers/${encodeURIComponent(server)}`, knobs);
/** `words` are those of `make toxic`. */
export const toxic = (words) => ask("POST", "/api/toxics", { words });
export const resetToxics = () => ask("POST", "/api/toxics/reset");
