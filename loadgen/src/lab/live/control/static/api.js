/** Asks the lab; gives its answer. What is refused, or not answered in time, is thrown as an Error
 * with the one line that says why. */
export async function ask(method, path, body, seconds = 20) {
  const change = { "Content-Type": "application/json", "Lab-Control": "1" };
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: method === "GET" ? {} : change,
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(1000 * seconds),
      cache: "no-store",
    });
  } catch {
    throw new Error("the lab does not answer: is it up?");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error ?? `${method} ${path}: ${answer.status}`);
  return found;
}
