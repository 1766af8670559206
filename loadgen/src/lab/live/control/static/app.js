// Wires the parts of the page.

import * as api from "./api.js";
import { bench } from "./bench.js";
import { byId, make, say } from "./dom.js";
import { knobs } from "./knobs.js";
import { watch } from "./live.js";
import { runs } from "./runs.js";
import { toxics } from "./toxics.js";

const RUNS_EVERY_MS = 15_000;
const AGAIN_MS = 2000;

async function start() {
  const info = await known();
  const names = { grafana: "Grafana", prometheus: "Prometheus" };
  byId("links").replaceChildren(
    ...Object.entries(info.links).map(([name, port]) =>
      make("a", { href: `http://${location.hostname}:${port}/` }, names[name] ?? name),
    ),
  );
  let look = async () => {};
  const changed = () => look();
  const readKnobs = knobs(info);
  const readAll = () => {
    readKnobs();
    runs();
  };
  // A trial or a bench may leave other JVMs behind, and a lab that was away too.
  let was;
  const since = (now) => {
    if (now && (was === null || (was?.trial && !now.trial))) readAll();
    was = now;
  };
  readAll();
  look = watch(info.servers, [toxics(info, changed), bench(info, changed, readAll), since]);
  document.addEventListener("visibilitychange", () => document.hidden || readAll());
  setInterval(() => document.hidden || runs(), RUNS_EVERY_MS);
}

/** What there is. A lab that is not up yet is asked again. */
async function known() {
  for (;;) {
    try {
      return await api.info();
    } catch (failure) {
      say(byId("state"), failure.message, true);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

start();
