// Knobs: one slider and number for each, on one server or on all, which keeps them comparable.

import * as api from "./api.js";
import { byId, fill, make, say } from "./dom.js";

const ALL = "";
const SLIDERS = {
  pool_size: 1000, queue_bound: 10_000, downstream_connections: 20_000,
  downstream_timeout_ms: 30_000, virtual_thread_parallelism: 16, lock_ms: 100,
  pin_ms: 500, lock_watch_ms: 100,
};

/** `info` says which there are. Returns what reads their values, and tells what was in the way, or
 * null; not to be called every second, for a server spends work on answers. */
export function knobs(info) {
  const said = byId("knobs-said");
  const server = byId("knob-server");
  let known = [];
  let changes = 0;
  let fields = new Map();

  const asked = () => (server.value === ALL ? known : known.filter((k) => k.server === server.value));
  const having = (knob) => asked().filter((one) => knob.name in one.values);
  // Values that are read again leave the fields where they are, with the focus and what is typed.
  const draw = () => {
    const shown = info.knobs.filter((knob) => having(knob).length);
    if (!shown.length || shown.map((knob) => knob.name).join() !== [...fields.keys()].join()) {
      fields = new Map(shown.map((knob) => [knob.name, field(knob, set)]));
      const elements = [...fields.values()].map((one) => one.element);
      byId("knob-fields").replaceChildren(...(elements.length ? elements : ["unknown"]));
    }
    for (const knob of shown) fields.get(knob.name).show(having(knob));
  };
  const read = async () => {
    const before = changes;
    let problem = null;
    try {
      const found = (await api.servers()).servers;
      // A knob was turned meanwhile: this may be older.
      if (before !== changes) return await read();
      known = found.map((one) => (one.problem ? unknown(one, one.problem) : one));
      const away = found.filter((one) => one.problem);
      problem = away.map((one) => `${one.server} ${one.problem}`).join("; ") || null;
    } catch (failure) {
      known = known.map((one) => unknown(one, failure.message));
      problem = failure.message;
    }
    say(byId("knobs-at"), problem ?? `Read at ${new Date().toLocaleTimeString()}.`, problem !== null);
    draw();
    return problem;
  };
  /** What is not known of a server that had these knobs when it last answered. */
  const unknown = ({ server: name }, problem) => {
    const had = known.find((one) => one.server === name)?.values ?? {};
    const values = Object.fromEntries(Object.keys(had).map((knob) => [knob, null]));
    return { server: name, values, problem };
  };
  async function set(knob, value) {
    const names = having(knob).map((one) => one.server);
    const done = [];
    const failed = new Map();
    for (const name of names) {
      try {
        const now = await api.turn(name, { [knob.name]: value });
        known = known.map((one) => (one.server === name ? now : one));
        done.push(name);
      } catch (failure) {
        failed.set(name, failure.message);
      } finally {
        changes += 1;
      }
    }
    const parts = [];
    if (done.length) parts.push(`${knob.name} is ${value} on ${done.join(", ")}`);
    if (failed.size) {
      const reasons = [...new Set(failed.values())].join("; ");
      const what = done.length ? "" : `${knob.name}=${value ?? ""} `;
      parts.push(`${what}failed on ${[...failed.keys()].join(", ")}: ${reasons}`);
    }
    say(said, parts.join("; "), failed.size > 0);
    // Of one that failed it may be either.
    if (failed.size) await read();
    else draw();
    if (done.length) fields.get(knob.name)?.follow(having(knob));
  }

  fill(server, [[ALL, "all that have it"], ...info.servers]);
  server.addEventListener("change", () => {
    fields = new Map();
    draw();
  });
  byId("knobs-read").addEventListener("click", async () => {
    const problem = await read();
    say(said, problem ?? "read again", problem !== null);
  });
  byId("knobs").addEventListener("submit", (event) => event.preventDefault());
  return read;
}

function nowText(servers, knob) {
  const values = new Map();
  for (const one of servers) {
    const value = one.values[knob.name] ?? "unknown";
    values.set(value, [...(values.get(value) ?? []), one.server]);
  }
  if (values.size === 1) return `now ${[...values.keys()][0]}`;
  return `now ${[...values].map(([value, names]) => `${value} (${names.join(", ")})`).join(", ")}`;
}

function field(knob, set) {
  const id = `knob-${knob.name}`;
  const slider = make("input", {
    type: "range", "aria-label": `${knob.name}, slider`, min: knob.least, max: SLIDERS[knob.name],
    step: 1,
  });
  const number = make("input", {
    type: "number", id, inputmode: "numeric", min: knob.least, max: knob.most, step: 1,
  });
  let isEdited = false;
  slider.addEventListener("input", () => {
    number.value = slider.value;
    isEdited = true;
  });
  number.addEventListener("input", () => {
    slider.value = number.value;
    isEdited = true;
  });
  const go = () => set(knob, number.value === "" ? null : Number(number.value));
  number.addEventListener("keydown", (event) => event.key === "Enter" && go());
  const label = make("label", { for: id }, `${knob.name}: ${knob.text} `);
  const now = make("span", { class: "faint", id: `${id}-now` });
  label.append(now);
  const button = make("button", { type: "button", onclick: go, "aria-label": `Set ${knob.name}` }, "Set");
  /** What is in force on these servers; what is being edited stays. */
  const show = (servers) => {
    now.textContent = nowText(servers, knob);
    const value = servers.map((one) => one.values[knob.name]).find((one) => one !== null);
    if (isEdited || value === undefined) return;
    // The value last: a slider takes no value beyond the limits it has so far.
    slider.max = Math.max(SLIDERS[knob.name], value);
    slider.value = number.value = value;
  };
  const follow = (servers) => {
    isEdited = false;
    show(servers);
  };
  const element = make("div", { class: "field knob" }, label, slider, number, button);
  return { element, show, follow };
}
