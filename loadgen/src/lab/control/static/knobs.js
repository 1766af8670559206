// Knobs: one slider and number for each, on one server or on all, which keeps them comparable.

import * as api from "./api.js";
import { byId, fill, make, say } from "./dom.js";

const ALL = "";
const SLIDERS = {
  pool_size: 1000, queue_bound: 10_000, downstream_connections: 20_000,
  downstream_timeout_ms: 30_000, virtual_thread_parallelism: 16,
};

/** `info` says which there are; reads their values once, for a server spends work on answers. */
export function knobs(info) {
  const said = byId("knobs-said");
  const server = byId("knob-server");
  let known = [];

  const asked = () => (server.value === ALL ? known : known.filter((k) => k.server === server.value));
  const having = (knob) => asked().filter((one) => knob.name in one.values);
  const draw = () => {
    const shown = info.knobs.filter((knob) => having(knob).length);
    const fields = shown.map((knob) => field(knob, having(knob), set));
    byId("knob-fields").replaceChildren(...fields);
    const away = known.filter((one) => one.problem).map((one) => `${one.server} ${one.problem}`);
    if (away.length) say(said, away.join("; "), true);
  };
  const read = async () => {
    try {
      known = (await api.servers()).servers;
      say(said, "");
      draw();
    } catch (failure) {
      say(said, failure.message, true);
    }
  };
  async function set(knob, value) {
    try {
      const names = having(knob).map((one) => one.server);
      for (const name of names) {
        const now = await api.turn(name, { [knob.name]: value });
        known = known.map((one) => (one.server === name ? now : one));
      }
      byId(`knob-${knob.name}-now`).textContent = nowText(having(knob), knob);
      say(said, `${knob.name} is ${value} on ${names.join(", ")}`);
    } catch (failure) {
      say(said, failure.message, true);
    }
  }

  fill(server, [[ALL, "all that have it"], ...info.servers]);
  server.addEventListener("change", draw);
  byId("knobs-read").addEventListener("click", read);
  byId("knobs").addEventListener("submit", (event) => event.preventDefault());
  return read();
}

function nowText(servers, knob) {
  const values = new Map();
  for (const one of servers) {
    const value = one.values[knob.name];
    values.set(value, [...(values.get(value) ?? []), one.server]);
  }
  if (values.size === 1) return `now ${[...values.keys()][0]}`;
  return `now ${[...values].map(([value, names]) => `${value} (${names.join(", ")})`).join(", ")}`;
}

function field(knob, servers, set) {
  const id = `knob-${knob.name}`;
  const value = servers[0].values[knob.name];
  // The value last: a slider takes no value beyond the limits it has so far.
  const slider = make("input", {
    type: "range",
    "aria-label": `${knob.name}, slider`,
    min: knob.least,
    max: Math.max(SLIDERS[knob.name], value),
    step: 1,
    value,
  });
  const number = make("input", {
    type: "number", id, inputmode: "numeric", min: knob.least, max: knob.most, step: 1, value,
  });
  slider.addEventListener("input", () => (number.value = slider.value));
  number.addEventListener("input", () => (slider.value = number.value));
  const go = () => set(knob, number.value === "" ? null : Number(number.value));
  number.addEventListener("keydown", (event) => event.key === "Enter" && go());
  const label = make("label", { for: id }, `${knob.name}: ${knob.text} `);
  label.append(make("span", { class: "faint", id: `${id}-now` }, nowText(servers, knob)));
  const button = make("button", { type: "button", onclick: go, "aria-label": `Set ${knob.name}` }, "Set");
  return make("div", { class: "field knob" }, label, slider, number, button);
}
