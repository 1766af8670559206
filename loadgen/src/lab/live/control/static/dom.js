// Elements, written down once.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/**
 * A new element. Properties that start with "on" are listeners, with "aria-" or "data-" and all
 * that HTML knows only as attributes are attributes; children are elements or texts. Text is
 * never taken for HTML.
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Options of a select, the value being the text unless pairs are given. */
export function fill(select, values) {
  select.replaceChildren(
    ...values.map((one) => {
      const [value, text] = Array.isArray(one) ? one : [one, one];
      return make("option", { value }, text);
    }),
  );
}

/** Says how something went, in the element for it. The same text is not read out again. */
export function say(element, text, isProblem = false) {
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("problem", isProblem);
}

/** Calls `todo` once there was no call for `ms`; `cancel` forgets those there were. */
export function settled(todo, ms = 250) {
  let timer;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(todo, ms);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
