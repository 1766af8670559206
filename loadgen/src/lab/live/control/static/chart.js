// The last two minutes of a server's p95, as SVG: both sides of it, and when toxics changed.

import { make, shape } from "./dom.js";

const SECONDS = 120;
// Between two looks further apart nothing is known.
const LONGEST_STEP_S = 5;
// As wide as there is room, so that text keeps its size on a phone.
const NARROWEST = 260;
const HEIGHT = 190;
const [LEFT, TOP, FLOOR] = [56, 10, HEIGHT - 22];
const LINES = { server: "server_p95_s", client: "client_p95_s" };

/** Gives what adds the numbers of a server at a time in seconds, and when toxics changed, and draws
 * all into `place`. Without numbers nothing is known. */
export function chart(place) {
  let points = [];
  let marked = [];

  return (at, server, numbers = {}, changes = marked) => {
    const isRecent = (point) => point.server === server && at - point.at <= SECONDS;
    points = [...points, { at, server, ...numbers }].filter(isRecent);
    marked = changes.filter((change) => at - change <= SECONDS);
    const key = make(
      "p", { class: "key" },
      make("strong", {}, `p95 of ${server}`),
      make("span", { class: "client" }, "client side"),
      make("span", { class: "server" }, "server side"),
      make("span", { class: "toxic" }, "toxics changed"),
    );
    const width = Math.max(NARROWEST, place.clientWidth);
    place.replaceChildren(key, drawn(points, marked, server, width));
  };
}

function drawn(points, changes, server, width) {
  const last = points.at(-1);
  const known = Object.values(LINES).flatMap((number) => points.map((point) => point[number] ?? 0));
  const most = roundUp(Math.max(0.01, ...known));
  const right = width - 8;
  const x = (at) => LEFT + (1 - (last.at - at) / SECONDS) * (right - LEFT);
  const y = (value) => TOP + (1 - value / most) * (FLOOR - TOP);
  const ms = (value) => (value === undefined ? "none" : `${Math.round(value * 1000)} ms`);
  const levels = [0, most / 2, most].flatMap((value) => {
    const text = `${+(value * 1000).toPrecision(3)} ms`;
    return [
      shape("line", { class: "axis", x1: LEFT, x2: right, y1: y(value), y2: y(value) }),
      shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, text),
    ];
  });
  const times = [["start", 2], ["middle", 1], ["end", 0]].map(([anchor, minutes]) => {
    const text = minutes ? `${minutes} min ago` : "now";
    const at = last.at - 60 * minutes;
    return shape("text", { x: x(at), y: HEIGHT - 4, "text-anchor": anchor }, text);
  });
  const marks = changes.map((at) =>
    shape("line", { class: "toxic", x1: x(at), x2: x(at), y1: TOP, y2: FLOOR }),
  );
  const lines = Object.entries(LINES).map(([name, number]) =>
    shape("path", { class: name, d: path(points, number, x, y) }),
  );
  const label =
    `p95 of ${server} over two minutes; ` +
    `now: client ${ms(last.client_p95_s)}, server ${ms(last.server_p95_s)}`;
  const attributes = { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label };
  return shape("svg", attributes, ...levels, ...times, ...marks, ...lines);
}

/** The next of 1, 2, 5 × 10^n that is not less. */
function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * unit).find((step) => step >= value);
}

/** Where a line is drawn: a gap wherever there is no number, or nobody looked. */
function path(points, number, x, y) {
  let before = -Infinity;
  return points.map(({ at, [number]: value }) => {
    const pen = at - before > LONGEST_STEP_S ? "M" : "L";
    before = value === undefined ? -Infinity : at;
    return value === undefined ? "" : `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
  }).join("");
}
