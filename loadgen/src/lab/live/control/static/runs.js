// The newest runs, with what each of them leaves.

import * as api from "./api.js";
import { byId, make } from "./dom.js";

/** Reads the list and shows it. */
export async function runs() {
  try {
    const found = (await api.runs()).runs;
    byId("runs").replaceChildren(
      ...(found.length ? found.map(listed) : [make("li", { class: "faint" }, "none yet")]),
    );
  } catch (failure) {
    byId("runs").replaceChildren(make("li", { class: "problem" }, failure.message));
  }
}

function listed(run) {
  const trials = run.trials === null ? "" : `, ${run.valid} of ${run.trials} trials valid`;
  const links = run.files.map((file) =>
    make(
      "a",
      { href: `/results/${run.name}/${file}`, "aria-label": `${file} of ${run.name}` },
      file,
    ),
  );
  const text = make("span", { class: "grow" }, make("strong", {}, run.name), ` ${run.kind}, ${run.status}${trials}`);
  if (run.question) text.append(make("br"), make("span", { class: "faint" }, run.question));
  return make("li", {}, text, ...links);
}
