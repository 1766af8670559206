// Toxics: what is in force, and one form for all types, made from what the lab says there is.

import { ask } from "./api.js";
import { byId, fill, make, say, slider } from "./dom.js";

// Where a field begins; others begin with what the lab takes by default.
const STARTS = { latency: 300, rate: 100, average_size: 64, delay: 1000, bytes: 1000 };

/** `words` are those of `make toxic`. */
const change = (words) => ask("POST", "/api/toxics", { words });

/** `info` says what there is; `look` looks at the lab again, after a change. Gives what to call with
 * each look. */
export function toxics(info, look) {
  const result = byId("toxic-said");
  const type = byId("toxic-type");
  const name = byId("toxic-name");
  const stream = byId("toxic-stream");
  const list = byId("in-force");
  // What is in force, as the lab said last; null: unknown.
  let proxies = null;
  let turn = Promise.resolve();
  // The toxic that the form is for, its fields by word of `make toxic`, and what the user edited
  // there that is not in force: those fields follow nothing.
  let shown;
  const fields = new Map();
  const edited = new Map();

  const inForce = (what) => {
    for (const proxy of proxies ?? []) {
      const toxic = proxy.toxics.find(({ name, type }) => name === what.name && type === what.type);
      if (toxic) return { proxy: proxy.name, toxic };
    }
    return null;
  };
  /** The form as what it shows is in force, but for what the user edited. */
  const follow = () => {
    const now = inForce(shown);
    byId("toxic-apply").textContent = now ? "Change" : "Put in force";
    for (const [word, field] of now ? fields : []) {
      if (!edited.has(word)) field.show(valueOf(now.toxic, word));
    }
  };
  /** One change after the other, each with the look that shows it. `todo` is called in its turn;
   * it gives null if there is nothing to do by then. Gives whether it was done, or null. */
  const send = (todo, done) => {
    turn = turn.then(async () => {
      try {
        if ((await todo()) === null) return null;
        say(result, done);
        return true;
      } catch (failure) {
        say(result, failure.message, true);
        return false;
      } finally {
        await look();
      }
    });
    return turn;
  };
  /** These edits are over: their fields follow again, unless the user went on. */
  const forget = (values) => {
    for (const [word, value] of values) if (edited.get(word) === value) edited.delete(word);
    follow();
  };
  /** Sends a field of a toxic in force, and nothing else. */
  const update = async (word) => {
    const what = shown;
    const value = fields.get(word).value();
    const isDone = await send(() => {
      if (proxies === null) throw new Error("not sent: it is unknown what is in force");
      const now = inForce(what);
      if (!now || String(valueOf(now.toxic, word)) === value) return null;
      return change({ NAME: what.name, PROXY: now.proxy, [word]: value });
    }, `${what.name} is in force, ${word}=${value}`);
    // What was edited of a toxic that is not in force is for when it is put in force.
    if (isDone !== null || inForce(what)) forget([[word, value]]);
  };
  const put = async () => {
    const values = [...fields].map(([word, field]) => [word, field.value()]);
    const words = { TYPE: shown.type, NAME: shown.name, ...Object.fromEntries(values) };
    if (await send(() => change(words), `${shown.name} is in force`)) forget(values);
  };
  const edit = (word) => edited.set(word, fields.get(word).value());
  const field = (word, limits) => {
    const pair = slider(limits, () => edit(word), () => update(word));
    fields.set(word, pair);
    return pair.element;
  };
  /** The form is for another name from now on: what was edited is no change of one in force. */
  const rename = () => {
    shown = { name: name.value.trim() || type.value, type: type.value };
    if (inForce(shown)) edited.clear();
    follow();
  };
  /** The form is for another type from now on. */
  const turnTo = () => {
    for (const { name } of info.toxics[shown?.type] ?? []) fields.delete(name.toUpperCase());
    edited.clear();
    const made = info.toxics[type.value].map((attribute) => {
      const { name, unit, minimum: min, maximum: max } = attribute;
      const limits = { id: `toxic-${name}`, name: name.replaceAll("_", " "), unit, min, max };
      const element = field(name.toUpperCase(), limits);
      fields.get(name.toUpperCase()).show(attribute.default ?? STARTS[name] ?? min);
      return element;
    });
    byId("toxic-attributes").replaceChildren(...made);
    fields.get("STREAM").show(info.streams[0]);
    fields.get("TOXICITY").show(1);
    rename();
  };

  fill(type, Object.keys(info.toxics));
  fill(stream, info.streams);
  fields.set("STREAM", { value: () => stream.value, show: (value) => (stream.value = value) });
  stream.addEventListener("input", () => edit("STREAM"));
  stream.addEventListener("change", () => update("STREAM"));
  const limits = { unit: "share of connections", min: 0, max: 1, step: 0.05 };
  const toxicity = field("TOXICITY", { id: "toxic-toxicity", name: "Toxicity", ...limits });
  stream.parentElement.after(toxicity);
  type.addEventListener("change", turnTo);
  name.addEventListener("input", rename);
  byId("toxic").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!inForce(shown)) put();
    else if (edited.size) [...edited.keys()].forEach(update);
    else say(result, `${shown.name} is in force as shown`);
  });
  const onClick = (id, todo, done) => byId(id).addEventListener("click", () => send(todo, done));
  onClick("downstream-down", () => change({ TYPE: "down" }), "down");
  onClick("downstream-up", () => change({ TYPE: "up" }), "up");
  onClick("toxics-reset", () => ask("POST", "/api/toxics/reset", {}), "all removed");

  const editToxic = (toxic) => {
    type.value = toxic.type;
    name.value = toxic.name === toxic.type ? "" : toxic.name;
    turnTo();
    byId("toxic-attributes").querySelector("input").focus();
  };
  const remove = async (proxy, toxic) => {
    const words = { NAME: toxic.name, PROXY: proxy.name, REMOVE: "yes" };
    // The button that had the focus is gone: it goes on where toxics are added.
    if (await send(() => change(words), `${toxic.name} is removed`)) type.focus();
  };
  let drawn = "";
  turnTo();

  /** `now` null: the lab does not answer. */
  return (now) => {
    proxies = now && now.proxies;
    follow();
    const problem = now ? "Toxiproxy does not answer" : "unknown: the lab does not answer";
    // Only what changed is drawn again, and a button keeps the focus it has.
    const state = JSON.stringify([proxies, now?.history, problem]);
    if (state === drawn) return;
    drawn = state;
    const since = new Map(now?.history.map(([at, ...toxic]) => [toxic.join("/"), at]));
    const items = proxies?.flatMap((proxy) => listed(proxy, since, editToxic, remove));
    const focused = list.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
    list.replaceChildren(...(items ?? [alarm(problem)]));
    if (!list.hasChildNodes()) list.append(make("li", { class: "faint" }, "none"));
    const again = [...list.querySelectorAll("button")].find((button) => button.ariaLabel === focused);
    again?.focus({ preventScroll: true });
    const down = proxies?.some((proxy) => !proxy.enabled);
    byId("downstream-down").setAttribute("aria-pressed", down === true);
    byId("downstream-up").setAttribute("aria-pressed", down === false);
  };
}

function valueOf(toxic, word) {
  const common = { STREAM: toxic.stream, TOXICITY: toxic.toxicity };
  return common[word] ?? toxic.attributes[word.toLowerCase()];
}

const alarm = (text) => make("li", { class: "problem" }, text);

/** What is in force on a proxy, as items of the list; `since` is when each toxic changed. */
function listed(proxy, since, edit, remove) {
  const clock = (toxic) => {
    const at = since.get(`${proxy.name}/${toxic}`);
    return at ? `since ${new Date(at).toLocaleTimeString()}` : "before the agent looked";
  };
  const items = proxy.toxics.map((toxic) => {
    const values = Object.entries(toxic.attributes).map(([key, value]) => `${key} ${value}`);
    const named = toxic.name === toxic.type ? toxic.name : `${toxic.name} (${toxic.type})`;
    const text = `${named}: ${values.join(", ")}, ${toxic.stream}, toxicity ${toxic.toxicity}`;
    const button = (verb, onclick) =>
      make("button", { type: "button", onclick, "aria-label": `${verb} ${toxic.name}` }, verb);
    return make(
      "li", {},
      make("span", { class: "grow" }, text),
      make("span", { class: "faint" }, clock(toxic.name)),
      button("Edit", () => edit(toxic)),
      button("Remove", () => remove(proxy, toxic)),
    );
  });
  return proxy.enabled ? items : [alarm(`${proxy.name} is DOWN, ${clock("")}`), ...items];
}
