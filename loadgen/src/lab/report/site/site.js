// Shows of a site's runs what its address asks for: #machine=…&server=…&server=…&load=…
// figures.js, before it on the page, unpacks the data and draws.

const FACETS = {
  machine: "Machine",
  kind: "Kind",
  server: "Server",
  route: "Route",
  mode: "Mode",
  load: "Load (connections@rate)",
  commit: "Code",
  run: "Run",
};
// More than these are too many to read.
const MOST = { lines: 12, places: 8, rows: 300 };

/** A new element. Texts are never taken for HTML. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** What the address asks for: the values of each facet, none for all. */
function asked() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.keys(FACETS).map((facet) => [facet, given.getAll(facet)]));
}

/** Whether it is asked for, whatever is asked of the facet `but`. What has no such facet is not. */
function fits(wanted, of, but) {
  return Object.entries(wanted).every(
    ([facet, values]) => facet === but || !values.length || values.includes(of[facet]),
  );
}

/** The figure with those points that `isAsked`, of how many runs, and how many lines are left out. */
function pruned(spec, isAsked, { height, legend }) {
  const asOf = (isShown) => (layer) => ({ ...layer, data: { values: layer.data.values.filter(isShown) } });
  const known = spec.layer.map(asOf(isAsked));
  const { legend: entries, scale } = spec.layer[0].encoding.color;
  const there = new Set(known.flatMap(({ data }) => data.values.map((point) => point.series)));
  const lines = scale.domain.filter((name) => there.has(name));
  const series = new Set(lines.slice(0, MOST.lines));
  const [first, ...others] = known
    .map(asOf((point) => series.has(point.series)))
    .filter(({ data }) => data.values.length)
    .map(({ params, ...layer }) => layer);
  if (!first) return null;
  const layers = [{ ...first, params: spec.layer[0].params }, ...others];
  const kept = { series, x: new Set(layers.flatMap(({ data }) => data.values.map(({ x }) => x))) };
  const only = (encoding) => (encoding.type === "nominal" ? narrowed(encoding, kept) : encoding);
  const each = (of) => Object.fromEntries(Object.entries(of).map(([name, one]) => [name, only(one)]));
  return {
    spec: {
      ...spec,
      height: height + legend * Math.ceil(series.size / entries.columns),
      encoding: each(spec.encoding),
      layer: layers.map((layer) => ({ ...layer, encoding: each(layer.encoding) })),
    },
    runs: new Set(layers.flatMap(({ data }) => data.values.map(({ run }) => run))).size,
    left: lines.length - series.size,
  };
}

/** An encoding of names, for those of its field that are kept. */
function narrowed(encoding, kept) {
  const { domain, range } = encoding.scale;
  const at = [...domain.keys()].filter((index) => kept[encoding.field].has(domain[index]));
  const scale = { ...encoding.scale, domain: at.map((index) => domain[index]) };
  if (range) scale.range = at.map((index) => range[index]);
  return { ...encoding, scale };
}

/** Rows of cells under a header; a cell is a text or an element. */
function table(label, header, rows) {
  const cells = (tag, of) => of.map((one) => element(tag, tag === "th" ? { scope: "col" } : {}, one));
  const body = rows.slice(0, MOST.rows).map((row) => element("tr", {}, ...cells("td", row)));
  const scroll = element(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": label },
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...cells("th", header))),
      element("tbody", {}, ...body),
    ),
  );
  const left = rows.length - body.length;
  return left ? [scroll, element("p", { class: "soft" }, `${left} more: narrow the filters.`)] : [scroll];
}

/** The address of what is asked for of one run. */
function linked(run) {
  return element("a", { href: `#${new URLSearchParams({ run })}` }, run);
}

class Site {
  #data;
  #runs;
  #cells;
  #items;
  #form = document.querySelector("#filters");
  #views = [];

  constructor(data) {
    this.#data = data;
    this.#runs = new Map(data.runs.map((run) => [run.run, run]));
    this.#cells = data.cells.map((cell) => ({ ...this.#runs.get(cell.run), ...cell }));
    const withCells = new Set(data.cells.map(({ run }) => run));
    const others = data.runs.filter(({ run }) => !withCells.has(run));
    const bare = others.flatMap((run) => [
      { ...run, bare: true },
      ...run.servers.map((server) => ({ ...run, server, bare: true })),
    ]);
    this.#items = [...this.#cells, ...bare];
    this.#filters();
    this.#form.addEventListener("change", () => {
      location.hash = new URLSearchParams(new FormData(this.#form)).toString();
    });
    addEventListener("hashchange", () => this.show());
  }

  /** A box for each value of each facet. */
  #filters() {
    for (const [facet, title] of Object.entries(FACETS)) {
      const values = [...new Set(this.#items.map((one) => one[facet]))].filter(Boolean);
      if (facet !== "run") values.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
      const boxes = values.map((value) =>
        element(
          "label",
          {},
          element("input", { type: "checkbox", name: facet, value }),
          element("span", {}, facet === "machine" ? this.#data.machines[value] : value),
          element("span", { class: "soft" }),
        ),
      );
      this.#form.append(element("fieldset", {}, element("legend", {}, title), ...boxes));
    }
    this.#form.append(element("p", {}, element("a", { href: "#" }, "Show all")));
  }

  /** Shows what the address asks for. */
  show() {
    const wanted = asked();
    const unknown = this.#tick(wanted);
    const cells = this.#cells.filter((cell) => fits(wanted, cell));
    const runs = new Set(this.#items.filter((one) => fits(wanted, one)).map(({ run }) => run));
    document.querySelector("#said").textContent = unknown.length
      ? `The address asks for what no run here has: ${unknown.join(", ")}.`
      : `${cells.length} of ${this.#cells.length} cells, ${runs.size} of ${this.#runs.size} runs.`;
    this.#views.splice(0).forEach((view) => view.finalize());
    this.#figures("curves", false, wanted);
    this.#figures("trend", true, wanted);
    this.#tables(cells);
    document.querySelectorAll("#runs > details").forEach((one, at) => {
      one.hidden = !runs.has(this.#data.runs[at].run);
    });
  }

  /** Ticks the boxes, and counts what each would show. Returns what is asked for and not there. */
  #tick(wanted) {
    const there = new Set();
    for (const box of this.#form.querySelectorAll("input")) {
      const { name, value } = box;
      const found = this.#items.filter((one) => one[name] === value && fits(wanted, one, name));
      // A run without cells counts once, however many servers it has.
      const count = new Set(found.map((one) => (one.bare ? one.run : one))).size;
      there.add(`${name}=${value}`);
      box.checked = wanted[name].includes(value);
      box.parentElement.lastChild.textContent = count;
      box.parentElement.hidden = !count && !box.checked;
    }
    const all = Object.entries(wanted).flatMap(([name, values]) => values.map((one) => `${name}=${one}`));
    return all.filter((one) => !there.has(one));
  }

  #figures(section, trend, wanted) {
    const specs = new Map();
    const parts = [];
    let machine = "";
    const places = this.#data.places
      .filter((one) => one.trend === trend)
      .map((place) => ({ ...place, found: this.#asked(place, wanted) }))
      .filter(({ found }) => found.length);
    for (const { found, ...place } of places.slice(0, MOST.places)) {
      if (place.machine !== machine) {
        machine = place.machine;
        parts.push(element("h3", {}, this.#data.machines[machine]));
      }
      const drawn = found.map(({ spec }) => {
        const figure = element("figure", { "aria-label": spec.title.text });
        specs.set(figure, spec);
        return figure;
      });
      parts.push(element("h4", {}, place.heading), element("div", { class: "figures" }, ...drawn));
      const more = Math.max(...found.map((one) => one.left));
      if (more) parts.push(element("p", { class: "soft" }, `${more} more lines: narrow the filters.`));
    }
    const left = places.length - MOST.places;
    if (left > 0) parts.push(element("p", { class: "soft" }, `${left} more loads: narrow the filters.`));
    if (!parts.length) parts.push(element("p", {}, trend ? NO_TREND : NO_CURVES));
    document.querySelector(`#${section} .filled`).replaceChildren(...parts);
    whenSeen(`#${section} figure`, async (figure) => {
      this.#views.push(await show(figure, specs.get(figure)));
    });
  }

  /** The figures of a place with what is asked for. One run alone is no trend. */
  #asked({ route, mode, trend, figures }, wanted) {
    const isAsked = ({ run, server, load }) =>
      fits(wanted, { server, load, route, mode, ...this.#runs.get(run) });
    return figures
      .map((one) => pruned(one, isAsked, this.#data))
      .filter((one) => one && !(trend && one.runs < 2));
  }

  /** Machine by machine. */
  #tables(cells) {
    const parts = [];
    const invalid = [];
    for (const [key, name] of Object.entries(this.#data.machines)) {
      const here = cells.filter(({ machine }) => machine === key);
      const rows = here.map(({ cells: [run, ...others] }) => [linked(run), ...others]);
      const why = here.flatMap(({ run, cells: [, lane, route, load], invalid: trials }) =>
        trials.map(([trial, reasons]) => [linked(run), trial, lane, route, load, reasons]),
      );
      const title = () => element("h3", {}, name);
      if (rows.length) parts.push(title(), ...table("Cells", this.#data.header, rows));
      if (why.length) invalid.push(title(), ...table("Invalid trials", INVALID, why));
    }
    const none = (text) => [element("p", {}, text)];
    document.querySelector("#cells .filled").replaceChildren(
      ...(parts.length ? parts : none("None of these runs has trials that can be judged.")),
    );
    document.querySelector("#invalid .filled").replaceChildren(
      ...(invalid.length ? invalid : none("No trial of these cells is invalid.")),
    );
  }
}

const INVALID = ["run", "trial", "server", "route", "load", "why"];
const NO_CURVES = "None of these cells can be drawn beside others; the runs say why.";
const NO_TREND = "No load of these was measured by two runs that are alike but for code and images.";

text(document.querySelector("#data"))
  .then((data) => new Site(JSON.parse(data)).show())
  .catch((failure) => {
    document.querySelector("#said").textContent = `This page cannot show its data: ${failure.message}`;
    console.error(failure);
  });
