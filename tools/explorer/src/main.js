// The page: reads the model that stands in it, and shows source, tables and graph of one program, linked with each other.
import { METRICS, element, real, short } from "./format.js";
import { Graph } from "./graph.js";
import { compiledPanel, linesPanel, memoryPanel, notesPanel } from "./panels.js";
import { Program } from "./program.js";
import { Source } from "./source.js";

const start = performance.now();
const program = new Program(JSON.parse(document.getElementById("model").textContent));
const root = document.documentElement;

// What is chosen; whoever shows it is told.
const state = {
  metric: program.metrics[0] === "seconds" ? "seconds" : program.root.cost.flops ? "flops" : "bytes",
  item: null,
  place: null,
  select(item) {
    this.item = item;
    this.place = item && item.equation !== null ? program.programs[item.program].equations.place[item.equation]
      : item && item.places.size === 1 ? [...item.places][0] : item ? null : this.place && null;
    if (this.place !== null && this.place < 0) this.place = null;
    changed();
    if (this.place !== null) source.reveal(this.place);
  },
  selectPlace(place) {
    this.place = place;
    const equations = program.linesCosts.get(place)?.equations ?? [];
    this.item = null;
    if (equations.length) {
      const path = program.pathTo(...equations[0]);
      this.item = path.at(-1);
      graph.reveal(path);
    }
    this.steps = { equations, at: 0 };
    changed();
    source.reveal(place);
    if (tab !== "Source" && tab !== "Lines" && tab !== "Compiled" && tab !== "Notes") showTab("Source");
  },
  step(by) {
    const { equations } = this.steps;
    this.steps.at = (this.steps.at + by + equations.length) % equations.length;
    const path = program.pathTo(...equations[this.steps.at]);
    this.item = path.at(-1);
    graph.reveal(path);
    changed();
  },
  selectEquation(p, i) {
    const path = program.pathTo(p, i);
    graph.reveal(path);
    this.select(path.at(-1));
  },
};

// -- the head

const total = program.root.cost;
const { timeline, arguments: given } = program.model.memory;
const operations = program.programs.reduce((sum, each) => sum + each.equations.op.length, 0);
const figures = [
  [operations.toLocaleString("en"), "operations"],
  total.flops ? [short(total.flops, "FLOP"), "in a call"] : null,
  [short(total.bytes, "B"), "moved unfused"],
  timeline.length ? [short(timeline.reduce((a, b) => Math.max(a, b), given), "B"), "at the peak"] : null,
  program.model.measured ? [short(program.model.measured.seconds, "s"), "measured"] : null,
  program.model.compiled ? [String(program.model.compiled.kernels.length), "kernels"] : null,
].filter(Boolean);

const search = element("input", { type: "search", placeholder: "Find an operation, layer, line …  ( / )", "aria-label": "find", oninput: find, onkeydown: searchKeys });
const results = element("div", { class: "results", hidden: true });
const metrics = element("div", { class: "metrics", role: "group", "aria-label": "colour by" },
  ...program.metrics.map((name) => element("button", { "data-metric": name, title: METRICS[name].title,
    onclick: () => { state.metric = name; changed(); } }, METRICS[name].label)));
const theme = element("button", { class: "theme", title: "light or dark", "aria-label": "light or dark", onclick: () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
} }, "◐");
const head = element("header", {},
  element("h1", {}, program.model.name), element("div", { class: "figures" },
    ...figures.map(([number, what]) => element("span", {}, element("b", {}, number), ` ${what}`))),
  element("div", { class: "find" }, search, results), metrics, theme);

// -- the left side

const side = element("section", { class: "side" });
const tabs = element("nav", { role: "tablist" });
const content = element("div", { class: "content" });
side.append(tabs, content);
const sourceHolder = element("div", { class: "holder" });
const panels = { Source: () => sourceHolder, Lines: () => linesPanel(program, state), Memory: () => memoryPanel(program, state),
  Compiled: () => compiledPanel(program, state), Notes: () => notesPanel(program, state) };
const made = new Map();
let tab = "";
function showTab(name) {
  tab = name;
  if (!made.has(name)) made.set(name, panels[name]());
  content.replaceChildren(made.get(name));
  for (const button of tabs.children) button.setAttribute("aria-selected", String(button.dataset.tab === name));
}
const { findings, numerics } = program.model;
const alarms = findings.length + Object.values(numerics?.rows ?? {}).flatMap((rows) => Object.values(rows)).filter((row) => row[3] || row[4]).length;
for (const name of Object.keys(panels)) {
  tabs.append(element("button", { role: "tab", "data-tab": name, onclick: () => { showTab(name); source.update(); } }, name,
    name === "Notes" && alarms ? element("span", { class: "count" }, String(alarms)) : null));
}

// -- the right side

const view = element("section", { class: "view" });
const card = element("aside", { class: "card", hidden: true });
document.getElementById("app").append(head, element("main", {}, side, element("div", { class: "splitter", onpointerdown: drag }), view));
const source = new Source(sourceHolder, program, state);
const graph = new Graph(view, program, state);
view.append(graph.toolbar(), legend(), card);
showTab(source.files.length ? "Source" : "Lines");
changed();
graph.fit(false, 0.62);

function legend() {
  const kinds = { product: "products", elementwise: "elementwise", reduction: "reductions", move: "moves", call: "calls and loops", other: "others" };
  const there = new Set(program.tables.kinds);
  return element("div", { class: "legend" }, ...Object.entries(kinds).filter(([kind]) => there.has(kind))
    .map(([kind, name]) => element("span", { class: kind }, name)));
}

function changed() {
  for (const button of metrics.children) button.setAttribute("aria-pressed", String(button.dataset.metric === state.metric));
  graph.update();
  source.update();
  showCard();
}

function showCard() {
  const { item, place } = state;
  card.hidden = !item;
  if (!item) return;
  const cost = item.cost;
  const rows = program.metrics.filter((name) => cost[name]).map((name) => [METRICS[name].label, short(cost[name], METRICS[name].unit)]);
  const owner = program.programs[item.program];
  const parts = [];
  if (item.equation !== null) {
    const { equations } = owner;
    const i = item.equation;
    const value = (v) => {
      const [type] = program.typeOf(item.program, v);
      if (typeof v !== "number") return element("code", { class: "value" }, String(v));
      const producer = program.producer(item.program, v);
      const input = owner.inputs.indexOf(v);
      const name = input >= 0 && owner.arguments[input] ? owner.arguments[input] : owner.labels[v];
      return element("code", { class: producer === undefined ? "value" : "value link", title: producer === undefined ? "an argument" : "show what makes it",
        onclick: producer === undefined ? undefined : () => state.selectEquation(item.program, producer) }, `${name}: ${type}`);
    };
    parts.push(element("div", { class: "values" }, ...equations.out[i].slice(0, 8).map(value), element("span", {}, " ← "),
      ...equations.in[i].slice(0, 10).map(value), equations.in[i].length > 10 ? `… ${equations.in[i].length} operands` : null));
    const scope = program.tables.scopes[equations.scope[i]];
    if (scope) rows.push(["Layer", scope]);
    if (owner.times !== 1) rows.push(["Runs", `${owner.times.toLocaleString("en")}${owner.open ? " or more" : ""} times`]);
    const numbers = program.model.numerics?.rows[item.program]?.[i];
    if (numbers) rows.push(["Values", `${real(numbers[0])} … ${real(numbers[1])}${numbers[3] ? `, ${numbers[3]} NaN` : ""}${numbers[4] ? `, ${numbers[4]} infinite` : ""}`]);
    const text = program.tables.texts[equations.text[i]];
    if (text) parts.push(element("pre", {}, text));
  }
  const kind = item.equation === null ? item.kind : program.tables.kinds[owner.equations.op[item.equation]];
  const steps = state.steps && place !== null && state.steps.equations.length > 1 && program.linesCosts.get(place)?.equations === state.steps.equations;
  const links = [];
  if (place !== null && place >= 0) links.push(element("button", { class: "link", onclick: () => { showTab("Source"); source.reveal(place); } }, program.placeName(place)));
  if (steps) {
    links.push(element("button", { title: "the one before", onclick: () => state.step(-1) }, "‹"),
      element("span", {}, `${state.steps.at + 1} of ${state.steps.equations.length} on this line`),
      element("button", { title: "the next", onclick: () => state.step(1) }, "›"));
  }
  if (item.isGroup) links.push(element("button", { onclick: () => { graph.toggle(item); showCard(); } }, graph.isOpen(item) ? "Fold" : "Unfold"));
  card.replaceChildren(element("div", { class: "title" }, element("span", { class: `dot ${kind}` }), element("b", {}, item.label),
    item.isGroup ? element("small", {}, ` ${item.detail} ${item.count.toLocaleString("en")} operations`) : null,
    element("span", { class: "links" }, ...links), element("button", { class: "close", title: "close", onclick: () => state.select(null) }, "×")),
  ...parts, element("dl", {}, ...rows.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])));
}

// -- finding

let chosen = 0;
let found = [];
function find() {
  const { results: rows, count } = program.search(search.value);
  found = rows;
  chosen = 0;
  results.hidden = !search.value.trim();
  results.replaceChildren(...rows.map(([p, i], n) => {
    const { equations, name } = program.programs[p];
    const scope = program.tables.scopes[equations.scope[i]];
    return element("button", { class: n === 0 ? "chosen" : "", onclick: () => open(n) },
      element("b", {}, program.tables.operations[equations.op[i]]),
      element("code", {}, equations.out[i].slice(0, 2).map((v) => program.typeOf(p, v)[0]).join(" ")),
      element("small", {}, [scope || (p ? name : ""), program.placeName(equations.place[i])].filter(Boolean).join(" · ")));
  }), element("div", { class: "under" }, count ? `${count.toLocaleString("en")} found` : "nothing found"));
}
function open(n) {
  results.hidden = true;
  if (found[n]) state.selectEquation(...found[n]);
}
function searchKeys(event) {
  if (event.key === "Enter") open(chosen);
  else if (event.key === "Escape") { results.hidden = true; search.blur(); }
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    chosen = Math.max(0, Math.min(found.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1)));
    [...results.querySelectorAll("button")].forEach((each, n) => {
      each.classList.toggle("chosen", n === chosen);
      if (n === chosen) each.scrollIntoView({ block: "nearest" });
    });
  }
}
document.addEventListener("click", (event) => { if (!event.target.closest(".find")) results.hidden = true; });
document.addEventListener("keydown", (event) => {
  if (event.target.closest?.("input, select")) return;
  if (event.key === "/") { event.preventDefault(); search.focus(); search.select(); }
  else if (event.key === "+" || event.key === "=") graph.by(1.4);
  else if (event.key === "-") graph.by(1 / 1.4);
  else if (event.key === "0" || event.key === "f") graph.fit();
  else if (event.key === "Escape") state.select(null);
});

function drag(event) {
  const splitter = event.currentTarget;
  splitter.setPointerCapture(event.pointerId);
  const move = ({ clientX }) => {
    const share = Math.max(0.15, Math.min(0.75, clientX / innerWidth));
    document.querySelector("main").style.setProperty("--side", `${100 * share}%`);
  };
  splitter.addEventListener("pointermove", move);
  splitter.addEventListener("pointerup", () => splitter.removeEventListener("pointermove", move), { once: true });
}

root.dataset.ready = String(Math.round(performance.now() - start)); // milliseconds, for those who test it
