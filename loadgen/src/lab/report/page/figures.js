// Draws the figures of a report again when they come into view, so that a reader can point, zoom
// and switch series off. Without it the page shows them as they were printed.
// vl-convert bundles this file with Vega: `vegaEmbed` is its import.

const OPTIONS = {
  mode: "vega-lite",
  // Expressions are interpreted: the page's security policy allows no other script, nor eval.
  ast: true,
  renderer: "svg",
  actions: false,
  defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
};

/** The specifications of a group of figures, in their order. */
const unpacked = new WeakMap();
function specs(group) {
  if (!unpacked.has(group)) {
    const packed = atob(group.querySelector("script").textContent);
    const bytes = Uint8Array.from(packed, (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(group, new Response(stream).json());
  }
  return unpacked.get(group);
}

async function draw(figure) {
  const group = figure.parentElement;
  const all = await specs(group);
  const spec = all[[...group.querySelectorAll("figure")].indexOf(figure)];
  // As large as what was printed there; what is too narrow for it shrinks the whole.
  const grown = Math.max(1, figure.clientWidth / spec.width);
  const [width, height] = [spec.width * grown, spec.height * grown].map(Math.floor);
  const live = document.createElement("div");
  live.className = "live";
  figure.append(live);
  const { view } = await vegaEmbed(live, { ...spec, width, height }, OPTIONS);
  figure.classList.add("drawn");
  byKeyboard(live, view);
}

/** Entries of the legend become buttons that the keyboard reaches. */
function byKeyboard(live, view) {
  const entries = [...live.querySelectorAll(".series_legend_entries > g")];
  const label = (entry) => entry.querySelector("text");
  const told = () => {
    for (const entry of entries) {
      entry.setAttribute("aria-pressed", label(entry).getAttribute("opacity") === "1");
    }
  };
  live.querySelectorAll(".role-legend").forEach((one) => one.removeAttribute("aria-hidden"));
  for (const entry of entries) {
    entry.setAttribute("role", "button");
    entry.setAttribute("tabindex", "0");
    entry.setAttribute("aria-label", label(entry).textContent);
    entry.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        label(entry).dispatchEvent(new MouseEvent("click", { bubbles: true }));
      }
    });
  }
  live.addEventListener("click", () => view.runAsync().then(told));
  told();
}

const seen = new IntersectionObserver(
  (changes) => {
    for (const { target, isIntersecting } of changes) {
      if (isIntersecting) {
        seen.unobserve(target);
        draw(target).catch((failure) => console.error(failure));
      }
    }
  },
  { rootMargin: "300px" },
);
document.querySelectorAll(".figures figure").forEach((figure) => seen.observe(figure));
