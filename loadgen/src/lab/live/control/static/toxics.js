// Toxics: what is in force, and one form for all types, made from what the lab says there is.

import * as api from "./api.js";
import { byId, fill, make, say, settled } from "./dom.js";

// How far a slider goes; the number beside it takes all that is allowed.
const SLIDERS = {
  latency: { latency: 2000, jitter: 500 },
  bandwidth: { rate: 1000 },
  slow_close: { delay: 5000 },
  timeout: { timeout: 10_000 },
  reset_peer: { timeout: 5000 },
  slicer: { average_size: 1500, size_variation: 500, delay: 100_000 },
  limit_data: { bytes: 100_000 },
};
// Of every type.
const COMMON = ["STREAM", "TOXICITY"];
const STARTS = { latency: 300, rate: 100, average_size: 64, delay: 1000, bytes: 1000 };

/** `info` says what there is; `changed` is called after each change. Returns what to call with
 * each look at the lab. */
export function toxics(info, changed) {
  const said = byId("toxic-said");
  const type = byId("toxic-type");
  const name = byId("toxic-name");
  const stream = byId("toxic-stream");
  // What is in force, as the lab said last; null: nobody knows.
  let proxies = null;
  // When a change was answered: a look that was asked for before is older.
  let answered = 0;
  let turn = Promise.resolve();
  // The form's fields by word of `make toxic`; and what was moved there and is not in force: those
  // fields follow nothing.
  const fields = new Map();
  const moved = new Map();
  const target = () => ({ name: name.value.trim() || type.value, type: type.value });
  let shown = null;

  const found = (what) => {
    for (const proxy of proxies ?? []) {
      const is = (toxic) => toxic.name === what.name && toxic.type === what.type;
      const toxic = proxy.toxics.find(is);
      if (toxic) return { proxy: proxy.name, toxic };
    }
    return null;
  };
  /** The form as what it shows is in force, but for what the user moved. */
  const follow = () => {
    const now = found(shown);
    byId("toxic-apply").textContent = now ? "Change" : "Put in force";
    if (!now) return;
    for (const [word, field] of fields) {
      if (!moved.has(word)) field.show(valueOf(now.toxic, word));
    }
  };
  /** One change after the other. `ask` is called in its turn, and null where there is nothing to
   * do by then. Tells whether it was done, or null. */
  const send = (ask, done) => {
    turn = turn.then(async () => {
      let isDone = false;
      try {
        const answer = await ask();
        if (answer === null) return null;
        answered = performance.now();
        const fresh = new Map(answer.proxies.map((proxy) => [proxy.name, proxy]));
        proxies = proxies?.map((proxy) => fresh.get(proxy.name) ?? proxy) ?? answer.proxies;
        draw(null);
        say(said, done);
        isDone = true;
      } catch (failure) {
        say(said, failure.message, true);
      }
      changed();
      return isDone;
    });
    return turn;
  };
  /** What these words ask for is over: their fields follow again, unless they were moved since. */
  const forget = (sent) => {
    for (const [word, value] of sent) if (moved.get(word) === value) moved.delete(word);
    follow();
  };
  /** Sends what was moved, and nothing else; `all`: also what the lab will refuse. */
  const flush = (all = false) => {
    later.cancel();
    const what = shown;
    const sent = [...moved].filter(([word]) => all || fields.get(word).isValid());
    if (!sent.length) return;
    const text = sent.map(([word, value]) => `${word}=${value}`).join(" ");
    send(() => {
      if (proxies === null) throw new Error("not sent: it is unknown what is in force");
      const now = found(what);
      // It is not in force, or not any more: what was moved is for when it is put in force.
      if (!now) return null;
      return api.toxic({ NAME: what.name, PROXY: now.proxy, ...Object.fromEntries(sent) });
    }, `${what.name} is in force, ${text}`).then((isDone) => isDone === null || forget(sent));
  };
  const later = settled(flush);
  const move = (word) => {
    moved.set(word, fields.get(word).value());
    later();
  };
  const put = () => {
    later.cancel();
    const values = [...fields].map(([word, field]) => [word, field.value()]);
    const words = { TYPE: shown.type, NAME: shown.name, ...Object.fromEntries(values) };
    send(() => api.toxic(words), `${shown.name} is in force`).then((isDone) => isDone && forget(values));
  };

  const build = () => {
    for (const word of [...fields.keys()]) if (!COMMON.includes(word)) fields.delete(word);
    const attributes = info.toxics[type.value].map((one) => {
      const word = one.name.toUpperCase();
      const start = one.default ?? STARTS[one.name] ?? one.minimum;
      const most = SLIDERS[type.value]?.[one.name] ?? one.maximum;
      const made = field(one, start, most, () => move(word));
      fields.set(word, made);
      return made.element;
    });
    byId("toxic-attributes").replaceChildren(...attributes);
    fields.get("STREAM").show(info.streams[0]);
    fields.get("TOXICITY").show(1);
  };
  /** The form is for another toxic from now on. */
  const turnTo = () => {
    flush();
    moved.clear();
    shown = target();
    build();
    follow();
  };

  fill(type, Object.keys(info.toxics));
  fill(stream, info.streams);
  stream.addEventListener("change", () => move("STREAM"));
  fields.set("STREAM", {
    value: () => stream.value,
    isValid: () => true,
    show: (value) => stream.value === value || (stream.value = value),
    has: (element) => element === stream,
  });
  fields.set(
    "TOXICITY",
    paired(byId("toxic-toxicity-slider"), byId("toxic-toxicity"), () => move("TOXICITY")),
  );
  type.addEventListener("change", turnTo);
  name.addEventListener("input", () => {
    flush();
    shown = target();
    // What was moved was for another name: it is no change of this one that is in force.
    if (found(shown)) moved.clear();
    follow();
  });
  byId("toxic").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!found(shown)) put();
    else if (moved.size) flush(true);
    else say(said, `${shown.name} is in force as shown`);
  });
  byId("downstream-down").addEventListener("click", () => send(() => api.toxic({ TYPE: "down" }), "down"));
  byId("downstream-up").addEventListener("click", () => send(() => api.toxic({ TYPE: "up" }), "up"));
  byId("toxics-reset").addEventListener("click", () => send(api.resetToxics, "all removed"));

  const edit = (toxic) => {
    type.value = toxic.type;
    name.value = toxic.name === toxic.type ? "" : toxic.name;
    turnTo();
    byId("toxic-attributes").querySelector("input").focus();
  };
  const remove = async (proxy, toxic) => {
    const words = { NAME: toxic.name, PROXY: proxy.name, REMOVE: "yes" };
    // The button that had the focus is gone: it goes on where toxics are added.
    if (await send(() => api.toxic(words), `${toxic.name} is removed`)) type.focus();
  };

  let drawn = "";
  /** `since`: when each toxic changed, null where that is not told yet. */
  const draw = (since, problem = "Toxiproxy does not answer") => {
    follow();
    // Only what changed is drawn again, and a button keeps the focus it has.
    const state = JSON.stringify([proxies, since && [...since], problem]);
    if (state === drawn) return;
    drawn = state;
    const list = byId("in-force");
    const focused = list.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
    list.replaceChildren(...listed(proxies, since, problem, edit, remove));
    const again = [...list.querySelectorAll("button")].find((one) => one.ariaLabel === focused);
    again?.focus({ preventScroll: true });
    const isKnown = proxies !== null;
    const down = (proxies ?? []).some((proxy) => !proxy.enabled);
    byId("downstream-down").setAttribute("aria-pressed", isKnown && down);
    byId("downstream-up").setAttribute("aria-pressed", isKnown && !down);
  };
  turnTo();

  return (now, asked) => {
    if (now === null) {
      proxies = null;
      draw(null, "unknown: the lab does not answer");
      return;
    }
    if (asked < answered) return;
    const before = found(shown);
    proxies = now.proxies;
    // Somebody else put it in force: only what is being edited at this moment stays.
    if (!before && found(shown)) {
      for (const word of [...moved.keys()]) {
        if (!fields.get(word).has(document.activeElement)) moved.delete(word);
      }
    }
    draw(new Map(now.changes.map((c) => [`${c.proxy}/${c.toxic}`, c.since])));
  };
}

function valueOf(toxic, word) {
  const common = { STREAM: toxic.stream, TOXICITY: toxic.toxicity };
  return common[word] ?? toxic.attributes[word.toLowerCase()];
}

function listed(proxies, since, problem, edit, remove) {
  if (proxies === null) return [make("li", { class: "problem" }, problem)];
  const items = [];
  for (const proxy of proxies) {
    if (!proxy.enabled) {
      const time = clock(since?.get(`${proxy.name}/`));
      const text = `${proxy.name} is DOWN${time ? `, since ${time}` : ""}`;
      items.push(make("li", { class: "problem" }, text));
    }
    for (const toxic of proxy.toxics) {
      const time = clock(since?.get(`${proxy.name}/${toxic.name}`));
      const values = Object.entries(toxic.attributes).map(([key, value]) => `${key} ${value}`);
      const named = toxic.name === toxic.type ? toxic.name : `${toxic.name} (${toxic.type})`;
      const text = `${named}: ${values.join(", ")}, ${toxic.stream}, toxicity ${toxic.toxicity}`;
      const before = since ? "before the agent looked" : "";
      items.push(
        make(
          "li",
          {},
          make("span", { class: "grow" }, text),
          make("span", { class: "faint" }, time ? `since ${time}` : before),
          button("Edit", toxic, () => edit(toxic)),
          button("Remove", toxic, () => remove(proxy, toxic)),
        ),
      );
    }
  }
  return items.length ? items : [make("li", { class: "faint" }, "none")];
}

const button = (text, toxic, onclick) =>
  make("button", { type: "button", onclick, "aria-label": `${text} ${toxic.name}` }, text);

const clock = (iso) => (iso ? new Date(iso).toLocaleTimeString() : "");

function field(one, start, most, moved) {
  const id = `toxic-${one.name}`;
  const label = `${one.name.replaceAll("_", " ")}, ${one.unit}`;
  const slider = make("input", {
    type: "range", id: `${id}-slider`, "aria-label": `${label}, slider`, min: one.minimum, max: most,
    step: 1,
  });
  const number = make("input", {
    type: "number", id, inputmode: "numeric", min: one.minimum, max: one.maximum, step: 1,
  });
  const pair = paired(slider, number, moved);
  pair.show(start);
  const named = make("label", { for: id }, label);
  return { ...pair, element: make("div", { class: "field slider" }, named, slider, number) };
}

/** A slider and a number that follow each other, as one field. */
function paired(slider, number, moved) {
  const isValid = () => number.value !== "" && number.checkValidity();
  const mark = () => number.setAttribute("aria-invalid", !isValid());
  slider.addEventListener("input", () => {
    number.value = slider.value;
    mark();
    moved();
  });
  number.addEventListener("input", () => {
    slider.value = number.value;
    mark();
    moved();
  });
  return {
    value: () => number.value,
    isValid,
    has: (element) => element === slider || element === number,
    show: (value) => {
      if (number.value !== "" && Number(number.value) === value) return;
      // The value last: a slider takes no value beyond the limits it has so far.
      slider.max = Math.max(slider.max, value);
      slider.value = number.value = value;
      mark();
    },
  };
}
