// Draws the figures of a report again when they come into view, so that a reader can point
// and switch series off. Without it the page shows them as they were printed.

const OPTIONS = {
  mode: "vega-lite",
  // Expressions are interpreted: the page's security policy allows no other script, nor eval.
  ast: true,
  renderer: "svg",
  actions: false,
  defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
};

/** The text of a packed element. */
function text(packed) {
  const bytes = Uint8Array.from(atob(packed.textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** What `make` gives of a key, made once. */
const known = new Map();
function once(key, make) {
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
}

/** Vega is packed too; the page's policy names its hash, so it may run. */
async function vega() {
  const script = document.createElement("script");
  script.textContent = await text(document.querySelector("#vega"));
  document.head.append(script);
}

async function draw(figure) {
  const group = figure.closest(".specs");
  const packed = group.querySelector("script");
  const all = await once(packed, async () => JSON.parse(await text(packed)));
  await show(figure, all[[...group.querySelectorAll("figure")].indexOf(figure)]);
}

/** Draws a specification into its figure. */
async function show(figure, spec) {
  await once("vega", vega);
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
  const showPressed = () => {
    for (const entry of entries) {
      entry.setAttribute("aria-pressed", label(entry).getAttribute("opacity") === "1");
    }
  };
  live.querySelectorAll(".role-legend").forEach((legend) => legend.removeAttribute("aria-hidden"));
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
  live.addEventListener("click", () => view.runAsync().then(showPressed));
  showPressed();
}

/** Does the work of each element once, when it comes into view. */
function whenSeen(elements, work) {
  const seen = new IntersectionObserver(
    (changes) => {
      for (const { target, isIntersecting } of changes) {
        if (isIntersecting) {
          seen.unobserve(target);
          work(target).catch((failure) => console.error(failure));
        }
      }
    },
    { rootMargin: "300px" },
  );
  document.querySelectorAll(elements).forEach((element) => seen.observe(element));
}

whenSeen(".figures figure", draw);
