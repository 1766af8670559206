// What is now: asked every second while the page is to be seen.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { byId, make, say } from "./dom.js";

const EVERY_MS = 1000;
// What was seen longer ago is not what is now, as after the page was out of sight.
const STALE_MS = 7000;
const COLUMNS = [
  ["rps", 1, 0], ["errors_rps", 1, 0], ["in_flight", 1, 0], ["client_rps", 1, 0],
  ["client_errors_rps", 1, 0], ["client_p95_s", 1000, 0], ["server_p95_s", 1000, 0],
  ["queue_p95_s", 1000, 1], ["service_p95_s", 1000, 0],
];

/** Starts to look; every listener is called with each answer and when it was asked for (as
 * performance.now() tells), or with null where nothing is known. */
export function watch(servers, listeners) {
  const chart = new Chart(byId("chart"));
  const rows = new Map(servers.map((server) => [server, row(server)]));
  byId("numbers").replaceChildren(...[...rows.values()].map((one) => one.element));
  let shown = servers[0];
  let last = null;

  function unknown(why) {
    for (const one of rows.values()) one.show(null, false);
    if (last) chart.pass(last.at + (performance.now() - last.asked) / 1000);
    say(byId("state"), why, true);
    for (const listener of listeners) listener(null);
  }

  async function look() {
    if (document.hidden) return;
    const asked = performance.now();
    if (last?.isKnown && asked - last.asked > STALE_MS) {
      last.isKnown = false;
      unknown("asking the lab …");
    }
    try {
      const now = await api.live();
      // A later look was quicker.
      if (last && asked < last.asked) return;
      last = { asked, at: now.at, isKnown: true };
      shown = chosen(now, servers, shown);
      const numbers = (server) => (now.problem === null ? (now.numbers[server] ?? {}) : null);
      for (const [server, one] of rows) one.show(numbers(server), loaded(now, server));
      const changes = now.history.map((change) => Date.parse(change.since) / 1000);
      chart.add(now.at, shown, now.numbers[shown], changes);
      say(byId("state"), told(now), now.problem !== null || now.proxies === null);
      for (const listener of listeners) listener(now, asked);
    } catch (failure) {
      if (last && asked < last.asked) return;
      if (last) last.isKnown = false;
      unknown(failure.message);
    }
  }

  // The next look begins a second after the last one was over: a slow lab is not asked faster.
  const again = () => look().finally(() => setTimeout(again, EVERY_MS));
  again();
  document.addEventListener("visibilitychange", look);
  return look;
}

const loaded = (now, server) => now.trial?.server === server;

/** The server of the trial; without one, the busiest, or the one that was shown. */
function chosen(now, servers, shown) {
  if (now.trial) return now.trial.server;
  const rps = (server) => now.numbers[server]?.rps ?? 0;
  const busiest = servers.reduce((a, b) => (rps(b) > rps(a) ? b : a));
  return rps(busiest) > 5 ? busiest : shown;
}

function told(now) {
  if (now.problem) return now.problem;
  if (now.proxies === null) return "Toxiproxy does not answer";
  const trial = now.trial;
  if (!trial) return "no trial is running";
  const rate = trial.offered_rps === null ? "closed load" : `${trial.offered_rps} req/s offered`;
  const phase = trial.phase === "measure" ? "measuring" : "warming up";
  return `${phase}: ${trial.server} ${trial.route}, ${trial.concurrency} connections, ${rate}`;
}

function row(server) {
  const cells = COLUMNS.map(([name]) => make("td", { class: "number", "data-is": name }, "unknown"));
  const name = make("th", { scope: "row" }, server);
  const element = make("tr", { "data-server": server }, name, ...cells);
  return {
    element,
    /** `numbers` null: nobody knows; a number that is not there has no value now. */
    show(numbers, isLoaded) {
      element.classList.toggle("loaded", isLoaded);
      COLUMNS.forEach(([key, times, digits], at) => {
        const value = numbers?.[key];
        const none = numbers === null ? "unknown" : "–";
        cells[at].textContent = value === undefined ? none : (value * times).toFixed(digits);
      });
    },
  };
}
