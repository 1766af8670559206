// Start and stop a bench; its words are those of `make bench`, and checked by the same rules.

import * as api from "./api.js";
import { byId, fill, make, say } from "./dom.js";

const ENDS = { 0: "finished", 1: "ended, but not every trial gave figures", 130: "stopped" };

/** `info` says what there is; `over` is called when a bench has ended. Returns what to call with each
 * look at the lab. */
export function bench(info, changed, over) {
  const said = byId("bench-said");
  const rate = byId("bench-rate");
  fill(byId("bench-route"), info.routes);
  byId("bench-route").value = "/downstream";
  byId("bench-servers").replaceChildren(
    ...info.servers.map((server, at) => {
      const box = make("input", { type: "checkbox", name: "server", value: server });
      box.checked = at < 2;
      return make("label", {}, box, server);
    }),
  );
  const mode = byId("bench-mode");
  mode.addEventListener("change", () => (rate.disabled = mode.value === "closed"));

  byId("bench").addEventListener("submit", async (event) => {
    event.preventDefault();
    const servers = [...byId("bench-servers").querySelectorAll("input:checked")];
    if (!servers.length) {
      say(said, "choose a server", true);
      return;
    }
    const words = {
      SERVER: servers.map((box) => box.value).join(","),
      CONC: byId("bench-conc").value.replaceAll(" ", ""),
      ROUTE: byId("bench-route").value,
      MODE: mode.value,
      DURATION: byId("bench-duration").value.trim(),
      NAME: "page",
    };
    if (mode.value !== "closed") words.RATE = rate.value.trim();
    try {
      await api.startBench(words);
      say(said, "started");
      await changed();
    } catch (failure) {
      say(said, failure.message, true);
    }
  });
  byId("bench-stop").addEventListener("click", async () => {
    try {
      await api.stopBench();
      say(said, "stopping: what was measured is kept");
      await changed();
    } catch (failure) {
      say(said, failure.message, true);
    }
  });

  let was = null;
  let drawn = "";
  return (now) => {
    byId("bench-state").textContent = now ? told(now.bench) : "unknown: the lab does not answer";
    if (!now) return;
    const state = now.bench;
    byId("bench-start").disabled = state.running;
    byId("bench-stop").disabled = !state.running || state.stopping;
    // Also one that began and ended while nobody looked.
    const another = state.ended_at !== null && state.ended_at !== was?.ended_at;
    if (was && !state.running && (was.running || another)) {
      say(said, ended(state), !(state.status in ENDS));
      // The button that had the focus can no longer be used.
      if (document.activeElement === document.body) byId("bench-start").focus({ preventScroll: true });
      over();
    }
    was = state;
    const text = [`lab bench ${state.words.join(" ")}`, ...state.output].join("\n");
    if (state.started_at !== null && text !== drawn) {
      const output = byId("bench-output");
      const atEnd = output.scrollTop + output.clientHeight >= output.scrollHeight - 20;
      // Only what is new is read out.
      if (drawn && text.startsWith(drawn)) output.append(text.slice(drawn.length));
      else output.textContent = text;
      drawn = text;
      if (atEnd) output.scrollTop = output.scrollHeight;
    }
  };
}

function told(state) {
  const time = (seconds) => new Date(seconds * 1000).toLocaleTimeString();
  if (state.stopping) return "stopping";
  if (state.running) return `running since ${time(state.started_at)}`;
  if (state.ended_at === null) return "none was started here";
  return `the last one, at ${time(state.ended_at)}: ${ended(state)}`;
}

function ended(state) {
  // An agent that began anew knows nothing of it.
  if (state.status === null) return "how it ended is unknown: the agent was restarted";
  return ENDS[state.status] ?? `failed, status ${state.status}`;
}
