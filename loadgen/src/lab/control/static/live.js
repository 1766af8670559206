// What is now: asked every second while the page is to be seen.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { byId, make, say } from "./dom.js";

const EVERY_MS = 1000;
const COLUMNS = [
  ["rps", 1, 0], ["errors_rps", 1, 0], ["in_flight", 1, 0], ["client_p95_s", 1000, 0],
  ["server_p95_s", 1000, 0], ["queue_p95_s", 1000, 1], ["service_p95_s", 1000, 0],
];

/** Starts to look; every listener is called with each answer. */
export function watch(servers, listeners) {
  const chart = new Chart(byId("chart"));
  const rows = new Map(servers.map((server) => [server, row(server)]));
  byId("numbers").replaceChildren(...[...rows.values()].map((one) => one.element));
  let shown = servers[0];

  async function look() {
    if (document.hidden) return;
    try {
      const now = await api.live();
      shown = chosen(now, servers, shown);
      for (const [server, one] of rows) one.show(now.numbers[server] ?? {}, loaded(now, server));
      const changes = now.history.map((change) => Date.parse(change.since) / 1000);
      chart.add(now.at, shown, now.numbers[shown], changes);
      say(byId("state"), told(now), now.problem !== null || now.proxies === null);
      for (const listener of listeners) listener(now);
    } catch (failure) {
      say(byId("state"), failure.message, true);
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
  if (!trial) return now.bench.running ? "the bench prepares a trial" : "no trial is running";
  const rate = trial.offered_rps === null ? "closed load" : `${trial.offered_rps} req/s offered`;
  const phase = trial.phase === "measure" ? "measuring" : "warming up";
  return `${phase}: ${trial.server} ${trial.route}, ${trial.concurrency} connections, ${rate}`;
}

function row(server) {
  const cells = COLUMNS.map(([name]) => make("td", { class: "number", "data-is": name }, "–"));
  const name = make("th", { scope: "row" }, server);
  const element = make("tr", { "data-server": server }, name, ...cells);
  return {
    element,
    show(numbers, isLoaded) {
      element.classList.toggle("loaded", isLoaded);
      COLUMNS.forEach(([key, times, digits], at) => {
        const value = numbers[key];
        cells[at].textContent = value === undefined ? "–" : (value * times).toFixed(digits);
      });
    },
  };
}
