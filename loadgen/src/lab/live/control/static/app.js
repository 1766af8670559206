// Wires the parts of the page.

import * as api from "./api.js";
import { byId, make, say } from "./dom.js";
import { knobs } from "./knobs.js";
import { watch } from "./live.js";
import { toxics } from "./toxics.js";

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
  const readKnobs = knobs(info);
  // A trial may leave other JVMs behind, and a lab that was away too.
  let was;
  const since = (now) => {
    if (now && (was === null || (was?.trial && !now.trial))) readKnobs();
    was = now;
  };
  readKnobs();
  look = watch(info.servers, [toxics(info, () => look()), since]);
  document.addEventListener("visibilitychange", () => document.hidden || readKnobs());
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
