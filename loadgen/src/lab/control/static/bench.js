// Start and stop a bench; its words are those of `make bench`, and checked by the same rules.

import * as api from "./api.js";
import { byId, fill, make, say } from "./dom.js";

/** `info` says what there is; `ended` is called when a bench has. Returns what to call with each
 * look at the lab. */
export function bench(info, changed, ended) {
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
    const state = now.bench;
    byId("bench-start").disabled = state.running;
    byId("bench-stop").disabled = !state.running || state.stopping;
    if (was?.running && !state.running) {
      const how = { 0: "finished", 1: "ended, but not every trial gave figures", 130: "stopped" };
      say(said, how[state.status] ?? `failed, status ${state.status}`, !(state.status in how));
      // The button that had the focus can no longer be used.
      if (document.activeElement === document.body) byId("bench-start").focus();
      ended();
    }
    was = state;
    const text = [`lab bench ${state.words.join(" ")}`, ...state.output].join("\n");
    if (state.started_at !== null && text !== drawn) {
      drawn = text;
      const output = byId("bench-output");
      const atEnd = output.scrollTop + output.clientHeight >= output.scrollHeight - 20;
      output.textContent = text;
      if (atEnd) output.scrollTop = output.scrollHeight;
    }
  };
}
