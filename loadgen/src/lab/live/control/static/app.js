// The page: what is now, asked every second while it is to be seen, and the parts that follow it.

import { ask } from "./api.js";
import { chart } from "./chart.js";
import { byId, make, say } from "./dom.js";
import { knobs } from "./knobs.js";
import { toxics } from "./toxics.js";

const EVERY_MS = 1000;
// What was seen longer ago is not what is now, as after the page was out of sight.
const STALE_MS = 7000;
// What is now is known soon, or not at all.
const LIVE_S = 5;
// The name of a number, its title, in how many of a unit it is shown, and with how many digits.
const COLUMNS = [
  ["rps", "req/s", 1, 0],
  ["errors_rps", "errors/s", 1, 0],
  ["in_flight", "in flight", 1, 0],
  ["client_rps", "client req/s", 1, 0],
  ["client_errors_rps", "client errors/s", 1, 0],
  ["client_p95_s", "client p95, ms", 1000, 0],
  ["server_p95_s", "server p95, ms", 1000, 0],
  ["queue_p95_s", "queue p95, ms", 1000, 1],
  ["service_p95_s", "service p95, ms", 1000, 0],
];

/** A lab that is not up yet is asked again what there is. */
const start = () =>
  ask("GET", "/api/info").then(show, (failure) => {
    say(byId("state"), failure.message, true);
    setTimeout(start, 2 * EVERY_MS);
  });

function show(info) {
  const links = Object.entries(info.links).map(([name, port]) => {
    const title = name[0].toUpperCase() + name.slice(1);
    return make("a", { href: `http://${location.hostname}:${port}/` }, title);
  });
  const titles = COLUMNS.map(([, title]) => make("th", { scope: "col", class: "number" }, title));
  const rows = info.servers.map(newRow);
  byId("links").replaceChildren(...links);
  byId("columns").append(...titles);
  byId("numbers").replaceChildren(...rows.map((row) => row.element));
  const draw = chart(byId("chart"));
  const readKnobs = knobs(info);
  const followToxics = toxics(info, look);
  let shown = info.servers[0];
  // When the last look that was answered was asked for, and what it found; null: no longer known.
  let last = -Infinity;
  let was;

  /** `now` null: it is unknown what is, and `why`. */
  function render(now, why) {
    const numbers = now && now.problem === null ? now.numbers : null;
    for (const { server, show } of rows) {
      show(numbers && (numbers[server] ?? {}), now?.trial?.server === server);
    }
    const changes = now?.history.map(([at]) => Date.parse(at) / 1000);
    draw(Date.now() / 1000, shown, now?.numbers[shown], changes);
    say(byId("state"), now ? summary(now) : why, numbers === null || now.proxies === null);
    followToxics(now);
    was = now;
  }

  async function look() {
    if (document.hidden) return;
    const asked = performance.now();
    if (was && asked - last > STALE_MS) render(null, "asking the lab …");
    try {
      const now = await ask("GET", "/api/live", undefined, LIVE_S);
      // A later look was quicker.
      if (asked < last) return;
      last = asked;
      shown = chosen(now, info.servers, shown);
      // A trial may leave other JVMs behind, and a lab that was away too.
      const mayHaveChanged = was === null || (was?.trial && !now.trial);
      render(now);
      if (mayHaveChanged) readKnobs();
    } catch (failure) {
      if (asked >= last) render(null, failure.message);
    }
  }

  readKnobs();
  // The next look begins a second after the last one was over: a slow lab is not asked faster.
  const again = () => look().finally(() => setTimeout(again, EVERY_MS));
  again();
  document.addEventListener("visibilitychange", () => {
    look();
    if (!document.hidden) readKnobs();
  });
}

/** The server of the trial; without one, the busiest, or the one that was shown. */
function chosen({ trial, numbers }, servers, shown) {
  if (trial) return trial.server;
  const rps = (server) => numbers[server]?.rps ?? 0;
  const busiest = servers.reduce((a, b) => (rps(b) > rps(a) ? b : a));
  return rps(busiest) > 5 ? busiest : shown;
}

function summary({ problem, proxies, trial }) {
  if (problem) return problem;
  if (proxies === null) return "Toxiproxy does not answer";
  if (!trial) return "no trial is running";
  const rate = trial.offered_rps === null ? "closed load" : `${trial.offered_rps} req/s offered`;
  const phase = trial.phase === "measure" ? "measuring" : "warming up";
  return `${phase}: ${trial.server} ${trial.route}, ${trial.concurrency} connections, ${rate}`;
}

function newRow(server) {
  const cells = COLUMNS.map(([name]) => make("td", { class: "number", "data-is": name }));
  const title = make("th", { scope: "row" }, server);
  const element = make("tr", { "data-server": server }, title, ...cells);
  /** `numbers` null: unknown; a number that is not there has no value now. */
  const show = (numbers, isLoaded) => {
    element.classList.toggle("loaded", isLoaded);
    for (const [at, [name, , times, digits]] of COLUMNS.entries()) {
      const value = numbers?.[name];
      const none = numbers === null ? "unknown" : "–";
      cells[at].textContent = value === undefined ? none : (value * times).toFixed(digits);
    }
  };
  show(null, false);
  return { server, element, show };
}

start();
