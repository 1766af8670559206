// The last two minutes of a server's p95, as SVG: client side, server side, and when toxics changed.

import { make } from "./dom.js";

const SECONDS = 120;
// Between two looks further apart nothing is known.
const LONGEST_STEP_S = 5;
// As wide as there is room, so that text keeps its size on a phone.
const NARROWEST = 260;
const HEIGHT = 190;
const LEFT = 56;
const BOTTOM = 22;
const TOP = 10;
const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** The next of 1, 2, 5 × 10^n that is not less. */
function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * unit).find((step) => step >= value);
}

/** Where a line is drawn: a gap wherever there is no number, or nobody looked. */
function path(points, x, y) {
  let drawn = "";
  let before = -Infinity;
  for (const { at, value } of points) {
    if (value === undefined) {
      before = -Infinity;
      continue;
    }
    const pen = at - before > LONGEST_STEP_S ? "M" : "L";
    drawn += `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    before = at;
  }
  return drawn;
}

/** Keeps what it is given, and draws it into `place`. */
export class Chart {
  #place;
  #points = [];
  #changes = [];
  #server = null;

  constructor(place) {
    this.#place = place;
  }

  /** `numbers` of one server at a time in seconds; `changes`: when toxics changed. */
  add(at, server, numbers, changes) {
    if (server !== this.#server) this.#points = [];
    this.#server = server;
    this.#points.push({ at, client: numbers?.client_p95_s, server: numbers?.server_p95_s });
    this.#points = this.#points.filter((point) => at - point.at <= SECONDS);
    this.#changes = changes.filter((change) => at - change <= SECONDS);
    this.#draw(at);
  }

  /** Time goes on to `at`, and nothing is known. */
  pass(at) {
    this.#points.push({ at });
    this.#points = this.#points.filter((point) => at - point.at <= SECONDS);
    this.#draw(at);
  }

  #draw(now) {
    const known = this.#points.flatMap((p) => [p.client, p.server]).filter((v) => v !== undefined);
    const most = roundUp(Math.max(0.01, ...known));
    const width = Math.max(NARROWEST, this.#place.clientWidth);
    const x = (at) => LEFT + (1 - (now - at) / SECONDS) * (width - LEFT - 8);
    const y = (value) => TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM);
    const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img" });
    const last = this.#points.at(-1);
    const ms = (value) => (value === undefined ? "none" : `${Math.round(value * 1000)} ms`);
    svg.setAttribute(
      "aria-label",
      `p95 of ${this.#server ?? "no server"} over two minutes; now: client ${ms(last?.client)}, ` +
        `server ${ms(last?.server)}`,
    );
    for (const share of [0, 0.5, 1]) {
      const level = y(most * share);
      svg.append(shape("line", { class: "axis", x1: LEFT, x2: width - 8, y1: level, y2: level }));
      const text = `${+(most * share * 1000).toPrecision(3)} ms`;
      svg.append(shape("text", { x: LEFT - 6, y: level + 4, "text-anchor": "end" }, text));
    }
    for (const [ago, text] of [[SECONDS, "2 min ago"], [SECONDS / 2, "1 min ago"], [0, "now"]]) {
      const anchor = ago === 0 ? "end" : ago === SECONDS ? "start" : "middle";
      svg.append(shape("text", { x: x(now - ago), y: HEIGHT - 4, "text-anchor": anchor }, text));
    }
    for (const at of this.#changes) {
      const line = { class: "toxic", x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM };
      svg.append(shape("line", line));
    }
    for (const name of ["server", "client"]) {
      const points = this.#points.map((point) => ({ at: point.at, value: point[name] }));
      svg.append(shape("path", { class: `line ${name}`, d: path(points, x, y) }));
    }
    const key = make(
      "p",
      { class: "key" },
      make("strong", {}, this.#server ? `p95 of ${this.#server}` : "p95"),
      make("span", { class: "client" }, "client side"),
      make("span", { class: "server" }, "server side"),
      make("span", { class: "toxic" }, "toxics changed"),
    );
    this.#place.replaceChildren(key, svg);
  }
}
