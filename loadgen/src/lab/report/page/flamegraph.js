// Draws the stacks of this page: the width of a frame is its share of all that is shown. A frame is
// [name, width, frames that it calls], and where two recordings are compared what it costs in A and in B.

const { unit, root } = JSON.parse(document.querySelector("#stacks").textContent);
const graph = document.querySelector("#graph");
const mark = document.querySelector("#mark");
const said = document.querySelector("#said");
const ROW = 19;
// Narrower frames are left out, as nobody can point at them.
const LEAST = 0.0015;
// Frames that differ by less than this share of what both take have no sign.
const ALIKE = 0.05;
// From the whole to the frame that is shown alone.
let path = [root];

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const isMarked = (name) => mark.value !== "" && name.toLowerCase().includes(mark.value.toLowerCase());

/** A colour of its own for each package, so that layers can be told apart. */
function colour(name) {
  let hash = 0;
  for (const sign of name.split(".").slice(0, 3).join(".")) hash = (hash * 31 + sign.codePointAt(0)) % 360;
  return `hsl(${hash} 65% 75%)`;
}

const three = (value) => Number(value.toPrecision(3)).toLocaleString("en");

/** Red where B takes more, blue where it takes less, pale where they are alike. */
function leaning(a, b) {
  const share = (b - a) / (a + b);
  return `hsl(${share > 0 ? 8 : 212} 85% ${92 - 30 * Math.abs(share)}%)`;
}

/** What a frame is called, told at length, and its colour. */
function look([name, weight, , a, b]) {
  if (a === undefined) {
    const all = `${weight.toLocaleString("en")} ${unit}, ${percent(weight / root[1])} of all`;
    return { text: name, title: `${name}\n${all}`, background: colour(name) };
  }
  const more = b - a;
  const told = `A ${three(a)}, B ${three(b)} ${unit} (${more < 0 ? "−" : "+"}${three(Math.abs(more))})`;
  const sign = Math.abs(more) < ALIKE * (a + b) ? "" : more < 0 ? "▼ " : "▲ ";
  return { text: sign + name, title: `${name}\n${told}`, background: leaning(a, b) };
}

function box(node, left, width, level, chosen) {
  const button = document.createElement("button");
  const { text, title, background } = look(node);
  button.textContent = text;
  button.title = title;
  button.style.left = `${100 * left}%`;
  button.style.width = `${100 * width}%`;
  button.style.top = `${ROW * level}px`;
  button.style.background = background;
  button.classList.toggle("marked", isMarked(node[0]));
  button.addEventListener("click", () => {
    path = chosen;
    draw();
  });
  graph.append(button);
}

/** Draws a frame and what it calls; returns how many levels that takes. */
function frames(node, left, width, level, chosen) {
  box(node, left, width, level, chosen);
  let at = left;
  let levels = 1;
  for (const child of node[2]) {
    const share = (width * child[1]) / node[1];
    if (share >= LEAST) {
      levels = Math.max(levels, 1 + frames(child, at, share, level + 1, [...chosen, child]));
    }
    at += share;
  }
  return levels;
}

/** The weight of the stacks that hold a marked frame. */
function marked(node) {
  return isMarked(node[0]) ? node[1] : node[2].reduce((sum, child) => sum + marked(child), 0);
}

function draw() {
  graph.replaceChildren();
  const above = path.slice(0, -1);
  above.forEach((node, level) => box(node, 0, 1, level, path.slice(0, level + 1)));
  const levels = frames(path.at(-1), 0, 1, above.length, path);
  graph.style.height = `${ROW * (above.length + levels)}px`;
  said.textContent = mark.value === "" ? "" : `${percent(marked(root) / root[1])} of all`;
}

mark.addEventListener("input", draw);
draw();
