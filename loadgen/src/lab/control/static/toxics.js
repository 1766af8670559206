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
const STARTS = { latency: 300, rate: 100, average_size: 64, delay: 1000, bytes: 1000 };

/** `info` says what there is; `changed` is called after each change. Returns what to call with
 * each look at the lab. */
export function toxics(info, changed) {
  const said = byId("toxic-said");
  const type = byId("toxic-type");
  const name = byId("toxic-name");
  let proxies = null;

  const send = async (words, done) => {
    try {
      await api.toxic(words);
      say(said, done);
      await changed();
      return true;
    } catch (failure) {
      say(said, failure.message, true);
      return false;
    }
  };
  const given = () => name.value.trim() || type.value;
  const isInForce = () =>
    (proxies ?? []).some((proxy) => proxy.toxics.some((toxic) => toxic.name === given()));
  const words = () => {
    const all = { TYPE: type.value, NAME: given(), STREAM: byId("toxic-stream").value };
    all.TOXICITY = byId("toxic-toxicity").value;
    for (const one of info.toxics[type.value]) {
      all[one.name.toUpperCase()] = byId(`toxic-${one.name}`).value;
    }
    return all;
  };
  const apply = () => send(words(), `${given()} is in force`);
  const moved = settled(() => isInForce() && apply());

  const build = (values = {}) => {
    const fields = info.toxics[type.value].map((one) => {
      const start = values[one.name] ?? one.default ?? STARTS[one.name] ?? one.minimum;
      return field(one, start, SLIDERS[type.value]?.[one.name] ?? one.maximum, moved);
    });
    byId("toxic-attributes").replaceChildren(...fields);
  };

  fill(type, Object.keys(info.toxics));
  fill(byId("toxic-stream"), info.streams);
  type.addEventListener("change", () => build());
  byId("toxic-stream").addEventListener("change", moved);
  paired(byId("toxic-toxicity-slider"), byId("toxic-toxicity"), moved);
  byId("toxic").addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  byId("downstream-down").addEventListener("click", () => send({ TYPE: "down" }, "down"));
  byId("downstream-up").addEventListener("click", () => send({ TYPE: "up" }, "up"));
  byId("toxics-reset").addEventListener("click", async () => {
    try {
      await api.resetToxics();
      say(said, "all removed");
      await changed();
    } catch (failure) {
      say(said, failure.message, true);
    }
  });
  build();

  const edit = (toxic) => {
    type.value = toxic.type;
    name.value = toxic.name === toxic.type ? "" : toxic.name;
    byId("toxic-stream").value = toxic.stream;
    byId("toxic-toxicity").value = byId("toxic-toxicity-slider").value = toxic.toxicity;
    build(toxic.attributes);
    byId("toxic-attributes").querySelector("input").focus();
  };
  const remove = async (proxy, toxic) => {
    const words = { NAME: toxic.name, PROXY: proxy.name, REMOVE: "yes" };
    // The button that had the focus is gone: it goes on where toxics are added.
    if (await send(words, `${toxic.name} is removed`)) type.focus();
  };

  let drawn = "";
  return (now) => {
    proxies = now.proxies;
    byId("toxic-apply").textContent = isInForce() ? "Change" : "Put in force";
    // Only what changed is drawn again: a button keeps the focus it has.
    const state = JSON.stringify([now.proxies, now.changes]);
    if (state === drawn) return;
    drawn = state;
    const since = new Map(now.changes.map((c) => [`${c.proxy}/${c.toxic}`, c.since]));
    byId("in-force").replaceChildren(...listed(now, since, edit, remove));
    const down = (now.proxies ?? []).some((proxy) => !proxy.enabled);
    byId("downstream-down").setAttribute("aria-pressed", down);
    byId("downstream-up").setAttribute("aria-pressed", !down);
  };
}

function listed(now, since, edit, remove) {
  if (now.proxies === null) return [make("li", { class: "problem" }, "Toxiproxy does not answer")];
  const items = [];
  for (const proxy of now.proxies) {
    if (!proxy.enabled) {
      const time = clock(since.get(`${proxy.name}/`));
      const text = `${proxy.name} is DOWN${time ? `, since ${time}` : ""}`;
      items.push(make("li", { class: "problem" }, text));
    }
    for (const toxic of proxy.toxics) {
      const time = clock(since.get(`${proxy.name}/${toxic.name}`));
      const values = Object.entries(toxic.attributes).map(([key, value]) => `${key} ${value}`);
      const named = toxic.name === toxic.type ? toxic.name : `${toxic.name} (${toxic.type})`;
      const text = `${named}: ${values.join(", ")}, ${toxic.stream}, toxicity ${toxic.toxicity}`;
      items.push(
        make(
          "li",
          {},
          make("span", { class: "grow" }, text),
          make("span", { class: "faint" }, time ? `since ${time}` : "before the agent looked"),
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
  const name = { id: `${id}-slider`, "aria-label": `${label}, slider` };
  // The value last: a slider takes no value beyond the limits it has so far.
  const slider = make("input", {
    type: "range", ...name, min: one.minimum, max: Math.max(most, start), step: 1, value: start,
  });
  const number = make("input", {
    type: "number", id, inputmode: "numeric", min: one.minimum, max: one.maximum, step: 1, value: start,
  });
  paired(slider, number, moved);
  return make("div", { class: "field slider" }, make("label", { for: id }, label), slider, number);
}

/** A slider and a number that follow each other. */
function paired(slider, number, moved) {
  slider.addEventListener("input", () => {
    number.value = slider.value;
    moved();
  });
  number.addEventListener("input", () => {
    slider.value = number.value;
    number.setAttribute("aria-invalid", !number.checkValidity());
    if (number.value !== "" && number.checkValidity()) moved();
  });
}
