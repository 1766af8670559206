// Elements, written down once.

// How far a slider goes at first, by unit; the number beside it takes all that is allowed.
const FAR = {
  ms: 2000, us: 100_000, "KB/s": 1000, bytes: 10_000, "share of connections": 1,
  threads: 1000, requests: 10_000, connections: 20_000, carriers: 16,
};

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** A new element with these attributes; those that start with "on" are listeners. Children are
 * elements or texts. Text is never taken for HTML. */
export const make = (tag, attributes, ...children) =>
  filled(document.createElement(tag), attributes, children);

/** The same in an SVG image. */
export const shape = (tag, attributes, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Fills a select: each option's value is its text. */
export const fill = (select, values) =>
  select.append(...values.map((value) => make("option", { value }, value)));

/** Says how something went, in the element for it. The same text is not read out again. */
export function say(element, text, isProblem = false) {
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("problem", isProblem);
}

/** A slider and a number that follow each other, with a label and what is `beside` them. `edited`
 * is called while the user moves one, `done` when the new value stays. */
export function slider({ id, name, unit, min, max, step = 1, label, beside = "" }, edited, done) {
  const both = { min, required: "", onchange: done ?? null };
  const far = { type: "range", id: `${id}-slider`, "aria-label": `${name}, slider`, max: FAR[unit] };
  const range = make("input", { ...both, ...far, step });
  const number = make("input", { ...both, type: "number", id, max, step: step < 1 ? "any" : step });
  const mark = () => number.setAttribute("aria-invalid", !number.checkValidity());
  for (const [from, to] of [[range, number], [number, range]]) {
    from.addEventListener("input", () => {
      to.value = from.value;
      mark();
      edited();
    });
  }
  const named = make("label", { for: id }, label ?? `${name}, ${unit}`);
  return {
    element: make("div", { class: "field slider" }, named, range, number, beside),
    value: () => number.value,
    show(value) {
      // The value last: a slider takes no value beyond the limits it has so far.
      range.max = Math.max(range.max, value);
      range.value = number.value = value;
      mark();
    },
  };
}
