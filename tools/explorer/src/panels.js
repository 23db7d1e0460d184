// The tabs beside the source: costs by line, memory, what was compiled, and notes.
import { scaleLinear } from "d3-scale";
import { area } from "d3-shape";
import { max } from "d3-array";
import { METRICS, element, real, short } from "./format.js";

const NS = "http://www.w3.org/2000/svg";
const MOST_ROWS = 400;

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A table whose rows are sorted by the column that is clicked.
function table(columns, rows, onclick, first) {
  let by = first ?? 0;
  let up = false;
  const body = element("tbody");
  const head = element("tr", {}, ...columns.map((column, n) => element("th",
    { class: column.number ? "number" : "", title: column.title, onclick: () => { up = by === n ? !up : false; by = n; fill(); } }, column.label)));
  function fill() {
    const key = columns[by].key;
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      const order = typeof x === "number" ? y - x : String(x).localeCompare(String(y));
      return up ? -order : order;
    });
    [...head.children].forEach((cell, n) => cell.classList.toggle("sorted", n === by));
    body.replaceChildren(...sorted.slice(0, MOST_ROWS).map((row) => element("tr",
      { onclick: onclick && (() => onclick(row)), class: onclick ? "link" : "", tabindex: onclick ? 0 : null },
      ...columns.map((column) => element("td", { class: column.number ? "number" : "" }, column.show ? column.show(row) : String(column.key(row)))))));
  }
  fill();
  return element("table", {}, element("thead", {}, head), body);
}

function bar(share, text) {
  const made = element("span", { class: "bar" }, text);
  made.style.setProperty("--share", share.toFixed(4));
  return made;
}

const title = (text, note) => element("h3", {}, text, note ? element("small", {}, note) : null);

export function linesPanel(program, state) {
  const rows = [...program.linesCosts.values()];
  const columns = [{ label: "Line", key: (row) => program.placeName(row.place) || "no line" }];
  for (const name of program.metrics) {
    const most = Math.max(...rows.map((row) => row[name]), 1e-30);
    columns.push({ label: METRICS[name].label, title: METRICS[name].title, number: true, key: (row) => row[name],
      show: (row) => bar(row[name] / most, row[name] ? short(row[name], METRICS[name].unit) : "·") });
  }
  columns.push({ label: "Runs", title: "operations that run in one call", number: true, key: (row) => row.count,
    show: (row) => row.count.toLocaleString("en") });
  return element("div", { class: "panel" }, title("Costs by line", "of one call"),
    table(columns, rows, (row) => state.selectPlace(row.place), 1));
}

export function memoryPanel(program, state) {
  const { timeline, steps, peak, alive, arguments: before } = program.model.memory;
  const panel = element("div", { class: "panel" });
  if (timeline.length) {
    const most = max(timeline) || 1;
    panel.append(title("Memory over the program", `peak ${short(most, "B")}, if nothing is fused`));
    panel.append(chart(program, state, timeline, steps, peak, most));
  }
  panel.append(title("What lives at the peak", before ? `arguments take ${short(before, "B")}` : ""));
  panel.append(table([
    { label: "Array", key: (row) => row[1] },
    { label: "Type", key: (row) => program.tables.types[row[2]][0] },
    { label: "Made by", key: (row) => (row[0] === null ? "argument" : operation(program, row[0])) },
    { label: "Line", key: (row) => program.placeName(row[4]) },
    { label: "Size", number: true, key: (row) => row[3], show: (row) => bar(row[3] / (alive[0]?.[3] || 1), short(row[3], "B")) },
  ], alive, (row) => (row[0] === null ? null : state.selectEquation(...row[0])), 4));
  const memory = program.model.compiled?.memory;
  if (memory) {
    panel.append(title("After compilation", "as XLA assigned it"));
    const names = { argument: "arguments", output: "results", alias: "results in memory of arguments", temp: "temporary", generated_code: "code" };
    panel.append(table([{ label: "Memory", key: (row) => row[0] }, { label: "Size", number: true, key: (row) => row[1], show: (row) => short(row[1], "B") }],
      Object.entries(memory).map(([name, size]) => [names[name], size]), null, 1));
  }
  return panel;
}

const operation = (program, [p, i]) => program.tables.operations[program.programs[p].equations.op[i]];

function chart(program, state, timeline, steps, peak, most) {
  const width = 520;
  const height = 150;
  const x = scaleLinear([0, Math.max(timeline.length - 1, 1)], [44, width - 6]);
  const y = scaleLinear([0, most * 1.06], [height - 18, 6]);
  // Of many equations, the greatest of each pixel.
  const step = Math.max(1, Math.floor(timeline.length / 500));
  const points = [];
  for (let i = 0; i < timeline.length; i += step) points.push([Math.min(i, timeline.length - 1), max(timeline.slice(i, i + step))]);
  if (points.length === 1) points.push([1, points[0][1]]);
  const shape = area((p) => x(p[0]), y(0), (p) => y(p[1]));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": "memory over the program" });
  for (const tick of y.ticks(4)) {
    picture.append(svg("line", { x1: 44, x2: width - 6, y1: y(tick), y2: y(tick), class: "grid" }));
    picture.append(svg("text", { x: 38, y: y(tick) + 3.5, "text-anchor": "end" }, short(tick, "B")));
  }
  picture.append(svg("path", { d: shape(points), class: "area" }));
  if (peak >= 0) picture.append(svg("circle", { cx: x(peak), cy: y(timeline[peak]), r: 4, class: "peak" }));
  const cursor = svg("line", { y1: 6, y2: height - 18, class: "cursor", visibility: "hidden" });
  const label = element("div", { class: "under" }, "Click the curve to see which operation runs there.");
  picture.append(cursor);
  const at = (event) => {
    const box = picture.getBoundingClientRect();
    return Math.max(0, Math.min(timeline.length - 1, Math.round(x.invert(((event.clientX - box.x) / box.width) * width))));
  };
  picture.addEventListener("mousemove", (event) => {
    const i = at(event);
    const [p, number] = steps[i];
    cursor.setAttribute("x1", x(i)); cursor.setAttribute("x2", x(i)); cursor.setAttribute("visibility", "visible");
    label.textContent = `${short(timeline[i], "B")} during ${operation(program, steps[i])} · ${program.placeName(program.programs[p].equations.place[number])}`;
  });
  picture.addEventListener("click", (event) => state.selectEquation(...steps[at(event)]));
  return element("div", {}, picture, label);
}

const KINDS = {
  fused: "fused by XLA", native: "kernels of purax", library: "library calls", callback: "Python", collective: "between devices",
  loop: "loops", call: "outlined calls", branches: "branches", reduced: "reductions", copy: "copies", alone: "single operations",
};

export function compiledPanel(program, state) {
  const { compiled } = program.model;
  const panel = element("div", { class: "panel" });
  if (!compiled) {
    panel.append(element("p", { class: "empty" }, "It was not compiled: explain(..., compile=True) shows what becomes of it."));
    return panel;
  }
  const { kernels } = compiled;
  const before = program.programs.reduce((sum, each) => sum + each.equations.op.length, 0);
  panel.append(title("Before and after", `${before.toLocaleString("en")} operations became ${kernels.length.toLocaleString("en")} kernels on ${compiled.platform}`));
  const counts = new Map();
  for (const kernel of kernels) counts.set(kernel.kind, (counts.get(kernel.kind) ?? 0) + 1);
  let shown = null;
  const chips = element("div", { class: "chips" }, ...[...counts].map(([kind, count]) => element("button", {
    class: `chip ${kind}`, onclick: (event) => {
      shown = shown === kind ? null : kind;
      [...chips.children].forEach((chip) => chip.classList.toggle("chosen", chip === event.currentTarget && shown !== null));
      fill();
    } }, `${count} ${KINDS[kind] ?? kind}`)));
  panel.append(chips);
  const collectives = kernels.filter((kernel) => kernel.sent !== undefined);
  if (collectives.length) {
    const total = collectives.reduce((sum, kernel) => sum + kernel.sent, 0);
    panel.append(title("Between devices", `each sends ${short(total, "B")} in a call`));
    panel.append(table([
      { label: "Operation", key: (kernel) => kernel.op },
      { label: "Type", key: (kernel) => kernel.type },
      { label: "Devices", number: true, key: (kernel) => kernel.devices },
      { label: "Runs", number: true, key: (kernel) => kernel.times ?? "?" },
      { label: "Sent", number: true, key: (kernel) => kernel.sent, show: (kernel) => short(kernel.sent, "B") },
      { label: "Line", key: (kernel) => lines(program, kernel) },
    ], collectives, (kernel) => goTo(kernel, state), 4));
  }
  const hosts = kernels.filter((kernel) => kernel.host);
  if (hosts.length) panel.append(title("Offloaded", `${hosts.length} kernels have results in the memory of the host`));
  const { arguments: given, results } = compiled.shardings;
  if (given.length || results.length) {
    panel.append(title("Shardings"));
    const first = program.programs[0];
    const rows = [...given.map((text, n) => [first.arguments[n] ?? `argument ${n}`, text]), ...results.map((text, n) => [`result ${n}`, text])];
    panel.append(table([{ label: "Array", key: (row) => row[0] }, { label: "Sharding", key: (row) => row[1] }], rows, null, 0));
  }
  panel.append(title("Kernels", "in the order in which they stand in the program"));
  const place = element("div");
  panel.append(place);
  function fill() {
    const rows = kernels.map((kernel, n) => ({ ...kernel, n })).filter((kernel) => shown === null || kernel.kind === shown);
    const most = Math.max(...rows.map((kernel) => kernel.seconds ?? 0), 1e-30);
    place.replaceChildren(table([
      { label: "", key: (kernel) => -kernel.n, show: (kernel) => String(kernel.n + 1), number: true },
      { label: "Kernel", key: (kernel) => kernel.name, show: (kernel) => kernelName(kernel) },
      { label: "Computes", key: (kernel) => made(kernel) },
      ...(program.hasTimes ? [{ label: "Time", number: true, key: (kernel) => kernel.seconds ?? 0,
        show: (kernel) => bar((kernel.seconds ?? 0) / most, kernel.seconds ? short(kernel.seconds, "s") : "·") }] : []),
      { label: "Line", key: (kernel) => lines(program, kernel) },
      { label: "Result", key: (kernel) => kernel.type },
    ], rows, (kernel) => goTo(kernel, state), 0));
  }
  fill();
  return panel;
}

function kernelName(kernel) {
  const made = element("span", { class: "kernel" }, element("span", { class: `chip small ${kernel.kind}` }, kernel.target || kernel.op),
    kernel.times !== 1 ? element("small", {}, ` × ${kernel.times ?? "?"}`) : null, kernel.host ? element("small", {}, " on the host") : null);
  made.style.paddingLeft = `${kernel.depth * 12}px`;
  return made;
}

const made = (kernel) => kernel["made of"].slice(0, 5).map(([name]) => name).join(", ") + (kernel["made of"].length > 5 ? " …" : "");
const lines = (program, kernel) => kernel.places.slice(0, 3).map(([place]) => program.placeName(place)).join(", ") + (kernel.places.length > 3 ? " …" : "");
const goTo = (kernel, state) => { if (kernel.places.length) state.selectPlace(kernel.places[0][0]); };

export function notesPanel(program, state) {
  const { findings, traces, seconds, numerics, measured } = program.model;
  const panel = element("div", { class: "panel" });
  if (numerics) panel.append(...numericsSection(program, state));
  panel.append(title("Side effects"));
  if (findings.length) {
    for (const found of findings) {
      panel.append(element("div", { class: "note warning link", onclick: () => state.selectPlace(found.place) },
        element("b", {}, `${found.kind} · ${program.placeName(found.place)}`), element("p", {}, found.text), element("p", {}, `Instead: ${found.advice}.`)));
    }
  } else panel.append(element("p", { class: "note fine" }, "None was found: the function is pure, as far as it was traced."));
  if (traces.length) {
    panel.append(title("Why it was traced", traces.length > 1 ? `${traces.length} times` : "once"));
    traces.forEach((trace, n) => panel.append(element("div", { class: "note" }, element("b", {}, `${n + 1}. `),
      trace.because.length ? trace.because.join("; ") : "the first call",
      element("div", { class: "types" }, trace.types.slice(0, 12).join("  ") + (trace.types.length > 12 ? " …" : "")))));
  }
  const phases = Object.entries(seconds);
  if (phases.length || measured) {
    panel.append(title("Seconds"));
    if (measured) phases.push(["a call", measured.seconds]);
    panel.append(table([{ label: "Phase", key: (row) => row[0] }, { label: "Time", number: true, key: (row) => row[1], show: (row) => short(row[1], "s") }], phases, null, 1));
  }
  return panel;
}

function numericsSection(program, state) {
  const rows = [];
  for (const [p, found] of Object.entries(program.model.numerics.rows)) {
    for (const [i, row] of Object.entries(found)) rows.push({ p: Number(p), i: Number(i), row });
  }
  const troubled = rows.filter(({ row }) => row[3] || row[4] || row[5]);
  const name = ({ p, i }) => program.tables.operations[program.programs[p].equations.op[i]];
  const share = (count, size) => (count ? `${count.toLocaleString("en")} (${((100 * count) / size).toPrecision(2)} %)` : "·");
  const made = [title("Values", troubled.length ? `${troubled.length} results with NaN, infinities or subnormal numbers` : "no NaN, infinity or subnormal number")];
  made.push(table([
    { label: "Operation", key: name },
    { label: "Line", key: ({ p, i }) => program.placeName(program.programs[p].equations.place[i]) },
    { label: "Least", number: true, key: ({ row }) => -(row[0] ?? 0), show: ({ row }) => real(row[0]) },
    { label: "Greatest", number: true, key: ({ row }) => row[1] ?? 0, show: ({ row }) => real(row[1]) },
    { label: "NaN", number: true, key: ({ row }) => row[3], show: ({ row }) => share(row[3], row[7]) },
    { label: "Inf", number: true, key: ({ row }) => row[4], show: ({ row }) => share(row[4], row[7]) },
    { label: "Subnormal", title: "numbers too small to be exact", number: true, key: ({ row }) => row[5], show: ({ row }) => share(row[5], row[7]) },
  ], rows, ({ p, i }) => state.selectEquation(p, i), [3, 4, 5].find((n) => rows.some(({ row }) => row[n])) + 1 || 3));
  return made;
}
