// Knobs: one slider and number for each, on one server or on all, which keeps them comparable.

import { ask } from "./api.js";
import { byId, fill, make, say, slider } from "./dom.js";

const ALL = "all that have it";

/** `info` says which there are. Returns what reads their values; not to be called every second, for
 * a server spends work on answers. */
export function knobs(info) {
  const result = byId("knobs-said");
  const server = byId("knob-server");
  // The values of each server; null: unknown, as it does not answer, and had that knob before.
  let latest = [];
  let fields = new Map();
  // One after the other: what is read is never older than what was set before.
  let turn = Promise.resolve();
  const inTurn = (todo) => (turn = turn.then(todo));

  const having = (knob) =>
    latest.filter((at) => [ALL, at.server].includes(server.value) && knob.name in at.values);
  // Values that are read again leave the fields where they are, with the focus and what is typed.
  const draw = () => {
    const shown = info.knobs.filter((knob) => having(knob).length);
    if (!shown.length || shown.map((knob) => knob.name).join() !== [...fields.keys()].join()) {
      fields = new Map(shown.map((knob) => [knob.name, field(knob, set)]));
      const elements = [...fields.values()].map((field) => field.element);
      byId("knob-fields").replaceChildren(...(elements.length ? elements : ["unknown"]));
    }
    for (const knob of shown) fields.get(knob.name).show(having(knob));
  };
  const unknown = ({ server }) => {
    const had = latest.find((before) => before.server === server)?.values ?? {};
    return { server, values: Object.fromEntries(Object.keys(had).map((knob) => [knob, null])) };
  };
  /** Gives what was in the way, or null. */
  const read = async () => {
    let problem;
    try {
      const { servers } = await ask("GET", "/api/servers");
      const away = servers.filter((server) => server.problem);
      problem = away.map(({ server, problem }) => `${server} ${problem}`).join("; ");
      latest = servers.map((server) => (server.problem ? unknown(server) : server));
    } catch (failure) {
      problem = failure.message;
      latest = latest.map(unknown);
    }
    say(byId("knobs-at"), problem || `Read at ${new Date().toLocaleTimeString()}.`, !!problem);
    draw();
    return problem;
  };
  const turnTo = async (knob, value) => {
    const done = [];
    const failed = [];
    const reasons = new Set();
    for (const { server } of having(knob)) {
      try {
        const now = await ask("PATCH", `/api/servers/${server}`, { [knob.name]: value });
        latest = latest.map((before) => (before.server === server ? now : before));
        done.push(server);
      } catch (failure) {
        failed.push(server);
        reasons.add(failure.message);
      }
    }
    const went = done.length ? [`${knob.name} is ${value} on ${done.join(", ")}`] : [];
    if (failed.length) {
      const what = done.length ? "" : `${knob.name}=${value} `;
      went.push(`${what}failed on ${failed.join(", ")}: ${[...reasons].join("; ")}`);
    }
    say(result, went.join("; "), failed.length > 0);
    if (done.length) fields.get(knob.name)?.release();
    // Of one that failed it may be either.
    if (failed.length) await read();
    else draw();
  };
  const set = (knob, value) => inTurn(() => turnTo(knob, value));

  fill(server, [ALL, ...info.servers]);
  server.addEventListener("change", () => {
    fields = new Map();
    draw();
  });
  byId("knobs-read").addEventListener("click", async () => {
    const problem = await inTurn(read);
    say(result, problem || "read again", !!problem);
  });
  return () => inTurn(read);
}

/** The knob's field: `show` shows the values of these servers, and leaves alone what the user edits
 * until `release`. */
function field(knob, set) {
  const id = `knob-${knob.name}`;
  const now = make("span", { class: "faint", id: `${id}-now` });
  const label = make("span", {}, `${knob.name}: ${knob.text} `, now);
  const beside = make("button", { "aria-label": `Set ${knob.name}` }, "Set");
  const limits = { unit: knob.unit, min: knob.least, max: knob.most };
  let isEdited = false;
  const pair = slider({ id, name: knob.name, label, beside, ...limits }, () => (isEdited = true));
  const submit = (event) => {
    event.preventDefault();
    set(knob, Number(pair.value()));
  };
  return {
    element: make("form", { class: "knob", onsubmit: submit }, pair.element),
    release: () => (isEdited = false),
    show(servers) {
      now.textContent = `now ${listed(servers, knob)}`;
      const value = servers.map(({ values }) => values[knob.name]).find((value) => value !== null);
      if (!isEdited && value !== undefined) pair.show(value);
    },
  };
}

function listed(servers, knob) {
  const values = Map.groupBy(servers, ({ values }) => values[knob.name] ?? "unknown");
  if (values.size === 1) return [...values.keys()][0];
  const names = (group) => group.map(({ server }) => server).join(", ");
  return [...values].map(([value, group]) => `${value} (${names(group)})`).join(", ");
}
