// The user's source, with what each line costs.
import highlighter from "highlight.js/lib/core";
import python from "highlight.js/lib/languages/python";
import { METRICS, element, short } from "./format.js";

highlighter.registerLanguage("python", python);

// Marked-up text as lines: what goes on over the end of a line is opened again on the next.
function highlightedLines(text) {
  const marked = highlighter.highlight(text, { language: "python", ignoreIllegals: true }).value;
  const open = [];
  return marked.split("\n").map((line) => {
    const start = open.join("");
    for (const tag of line.match(/<span[^>]*>|<\/span>/g) ?? []) {
      if (tag === "</span>") open.pop(); else open.push(tag);
    }
    return start + line + "</span>".repeat(open.length);
  });
}

export class Source {
  constructor(parent, program, state) {
    Object.assign(this, { program, state });
    this.files = program.tables.files.map((file, n) => ({ ...file, n })).filter((file) => file.parts.length);
    this.placeAt = new Map(program.tables.places.map(([file, line], place) => [`${file}:${line}`, place]));
    const weight = (file) => [...program.linesCosts.values()].filter((row) => row.place >= 0
      && program.tables.places[row.place][0] === file.n).reduce((sum, row) => sum + row.equations.length, 0);
    this.files.sort((a, b) => weight(b) - weight(a));
    this.picker = element("select", { "aria-label": "file", onchange: () => this.showFile(this.files[this.picker.selectedIndex]) },
      ...this.files.map((file) => element("option", {}, file.name)));
    this.code = element("div", { class: "code" });
    this.body = element("div", { class: "source" },
      this.files.length > 1 ? this.picker : element("div", { class: "file" }, this.files[0]?.name ?? ""), this.code);
    parent.append(this.body);
    if (this.files.length) this.showFile(this.files[0]);
    else this.code.append(element("p", { class: "empty" }, "No source of the user's is at hand for this program."));
  }

  showFile(file) {
    this.file = file;
    this.picker.selectedIndex = this.files.indexOf(file);
    this.rows = new Map();
    this.code.replaceChildren();
    for (const [first, lines] of file.parts) {
      if (first > 1) this.code.append(element("div", { class: "gap" }, "⋯"));
      highlightedLines(lines.join("\n")).forEach((html, n) => {
        const place = this.placeAt.get(`${file.n}:${first + n}`);
        const text = element("span", { class: "text" });
        text.innerHTML = html || " ";
        const figure = element("span", { class: "figure" });
        const row = element("div", { class: place === undefined ? "line" : "line used", "data-line": first + n,
          onclick: place === undefined ? undefined : () => this.state.selectPlace(place) },
        element("span", { class: "number" }, String(first + n)), text, figure);
        if (place !== undefined) this.rows.set(place, { row, figure });
        this.code.append(row);
      });
    }
    this.update();
    const first = [...this.rows.values()][0];
    if (first) requestAnimationFrame(() => { this.code.scrollTop = Math.max(first.row.offsetTop - 80, 0); });
  }

  update() {
    const { metric, place } = this.state;
    const rows = [...this.program.linesCosts.values()];
    const most = Math.max(...rows.map((row) => row[metric]), 1e-30);
    for (const [each, { row, figure }] of this.rows ?? []) {
      const cost = this.program.linesCosts.get(each);
      const share = cost ? cost[metric] / most : 0;
      row.style.setProperty("--share", share.toFixed(4));
      row.classList.toggle("selected", each === place);
      figure.textContent = cost?.[metric] ? short(cost[metric], METRICS[metric].unit) : "";
      row.title = cost ? this.program.metrics.map((name) => `${METRICS[name].label} ${short(cost[name], METRICS[name].unit)}`).join("\n")
        + `\n${cost.count.toLocaleString("en")} operations` : "";
    }
  }

  reveal(place) {
    if (place === null || place < 0) return;
    const [n] = this.program.tables.places[place];
    const file = this.files.find((each) => each.n === n);
    if (!file) return;
    if (file !== this.file) this.showFile(file);
    const found = this.rows.get(place);
    if (!found) return;
    const { offsetTop, offsetHeight } = found.row;
    const { scrollTop, clientHeight } = this.code;
    if (offsetTop < scrollTop + 20 || offsetTop + offsetHeight > scrollTop + clientHeight - 20) {
      this.code.scrollTo({ top: offsetTop - clientHeight / 2, behavior: "smooth" });
    }
  }
}
