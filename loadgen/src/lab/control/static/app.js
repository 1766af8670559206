// Wires the parts of the page.

import * as api from "./api.js";
import { bench } from "./bench.js";
import { byId, make, say } from "./dom.js";
import { knobs } from "./knobs.js";
import { watch } from "./live.js";
import { runs } from "./runs.js";
import { toxics } from "./toxics.js";

const RUNS_EVERY_MS = 15_000;

async function start() {
  const info = await api.info();
  const names = { grafana: "Grafana", prometheus: "Prometheus" };
  byId("links").replaceChildren(
    ...Object.entries(info.links).map(([name, port]) =>
      make("a", { href: `http://${location.hostname}:${port}/` }, names[name] ?? name),
    ),
  );
  const listeners = [];
  let look = async () => {};
  const changed = () => look();
  listeners.push(toxics(info, changed), bench(info, changed, runs));
  look = watch(info.servers, listeners);
  knobs(info);
  runs();
  setInterval(() => document.hidden || runs(), RUNS_EVERY_MS);
}

start().catch((failure) => say(byId("state"), failure.message, true));
