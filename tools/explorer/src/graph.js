// The graph: boxes that unfold, with the lines that values take between them.
import { select } from "d3-selection";
import "d3-transition";
import { zoom, zoomIdentity } from "d3-zoom";
import { curveBasis, line } from "d3-shape";
import { METRICS, element, short } from "./format.js";
import { TITLE, layOut, nodeTexts, secondLine } from "./layout.js";

const FIRST = 28; // nodes that are shown when the page opens
const route = line((p) => p.x, (p) => p.y).curve(curveBasis);

export class Graph {
  constructor(parent, program, state) {
    Object.assign(this, { program, state });
    this.open = new Set();
    this.svg = select(parent).append("svg").attr("class", "graph").attr("tabindex", 0)
      .attr("aria-label", "the program as a graph");
    const marker = this.svg.append("defs").append("marker").attr("id", "arrow").attr("viewBox", "0 0 8 8")
      .attr("refX", 7).attr("refY", 4).attr("markerWidth", 7).attr("markerHeight", 7).attr("orient", "auto");
    marker.append("path").attr("d", "M0,1 L7,4 L0,7 z");
    this.canvas = this.svg.append("g");
    this.zoom = zoom().scaleExtent([0.03, 4]).on("zoom", ({ transform }) => {
      this.canvas.attr("transform", transform);
      this.svg.classed("far", transform.k < 0.45);
    });
    this.svg.call(this.zoom).on("dblclick.zoom", null).on("click", (event) => {
      if (event.target === this.svg.node()) this.state.select(null);
    });
    this.#openFirst();
    this.render();
  }

  #openFirst() {
    let shown = this.program.root.children.length;
    let waiting = [...this.program.root.children];
    while (waiting.length) {
      const next = [];
      for (const item of waiting) {
        if (!item.isGroup || item.kind === "part" || item.kind === "turn") continue;
        if (shown + item.children.length > FIRST) continue;
        this.open.add(item.path);
        shown += item.children.length;
        next.push(...item.children);
      }
      waiting = next;
    }
  }

  isOpen = (item) => this.open.has(item.path);

  toggle(item) {
    const before = this.#screenPlace(item);
    if (this.isOpen(item)) this.open.delete(item.path);
    else this.open.add(item.path);
    this.render();
    this.#keepInPlace(item, before);
  }

  render() {
    const layout = layOut(this.program.root, this.isOpen);
    this.size = layout;
    this.boxes = new Map();
    this.canvas.selectAll("*").remove();
    this.#drawGroup(this.canvas, layout, 0, 0);
    this.update();
  }

  #drawGroup(parent, layout, x, y) {
    const group = parent.append("g").attr("transform", `translate(${x},${y})`);
    const nodes = group.append("g");
    for (const box of layout.boxes) this.#drawBox(nodes, box);
    const paths = group.insert("g", "g").attr("class", "edges");
    for (const edge of layout.edges) {
      const path = paths.append("path").attr("d", route(edge.points)).attr("class", "edge").attr("marker-end", "url(#arrow)")
        .datum({ from: layout.boxes[edge.from].item, to: layout.boxes[edge.to].item });
      const types = edge.values.slice(0, 6).map((v) => this.program.typeOf(edge.program, v)[0]);
      path.append("title").text(types.join("\n") + (edge.values.length > 6 ? `\n… ${edge.values.length} values` : ""));
    }
  }

  #drawBox(parent, box) {
    const { item, width, height } = box;
    this.boxes.set(item.path, box);
    const isOpen = Boolean(box.layout);
    const kind = item.isGroup ? item.kind : this.program.tables.kinds[
      this.program.programs[item.program].equations.op[item.equation]];
    const node = parent.append("g").datum(item).attr("class", `node ${item.isGroup ? "group" : "operation"} ${kind}`)
      .classed("open", isOpen).attr("transform", `translate(${box.x},${box.y})`).attr("data-path", item.path)
      .on("click", (event) => { event.stopPropagation(); this.state.select(item); })
      .on("dblclick", (event) => { event.stopPropagation(); if (item.isGroup) this.toggle(item); });
    node.append("rect").attr("class", "box").attr("width", width).attr("height", height).attr("rx", isOpen ? 12 : 9);
    const [first, second] = nodeTexts(item);
    if (isOpen) {
      const title = node.append("text").attr("x", 34).attr("y", 20);
      title.append("tspan").attr("class", "label").text(item.label);
      title.append("tspan").attr("class", "small").attr("dx", 8).text(secondLine(item));
      this.#drawGroup(node, box.layout, (width - box.layout.width) / 2, TITLE);
    } else {
      const middle = item.isGroup ? (width + 16) / 2 : width / 2;
      node.append("rect").attr("class", "heat").attr("x", 8).attr("y", height - 5).attr("height", 2.5).attr("rx", 1.2);
      node.append("text").attr("class", "label").attr("x", middle).attr("y", 18).attr("text-anchor", "middle").text(first);
      node.append("text").attr("class", "small").attr("x", middle).attr("y", 33).attr("text-anchor", "middle").text(second);
    }
    if (item.isGroup) {
      const button = node.append("g").attr("class", "fold").attr("transform", "translate(18,16)")
        .attr("role", "button").attr("aria-label", isOpen ? "fold" : "unfold")
        .on("click", (event) => { event.stopPropagation(); this.toggle(item); });
      button.append("circle").attr("r", 8);
      button.append("path").attr("d", isOpen ? "M-4,0H4" : "M-4,0H4M0,-4V4");
    }
    node.append("title").text(`${item.label}\n${secondLine(item)}`);
  }

  // Colours by the metric that is chosen, and marks of what is selected.
  update() {
    const { metric, item, place } = this.state;
    const total = Math.max(this.program.root.cost[metric], 1e-30);
    const graph = this;
    this.canvas.selectAll("g.node").each(function mark(each) {
      const share = Math.min(each.cost[metric] / total, 1);
      const node = select(this);
      node.style("--share", share.toFixed(4)).classed("selected", each === item)
        .classed("on-line", place !== null && each.places.has(place) && !graph.isOpen(each));
      const box = graph.boxes.get(each.path);
      node.select(":scope > .heat").attr("width", Math.max(share > 0.0005 ? 2 : 0, (box.width - 16) * Math.sqrt(share)));
      node.select(":scope > title").text(`${each.label}\n${secondLine(each)}\n${METRICS[metric].label} `
        + `${short(each.cost[metric], METRICS[metric].unit)} (${(100 * share).toFixed(1)} %)`);
    });
    this.canvas.selectAll("path.edge").classed("touching", ({ from, to }) => item !== null && (from === item || to === item))
      .classed("in", ({ to }) => to === item);
  }

  #rectangle(item) {
    const node = this.canvas.select(`g.node[data-path="${item.path}"] > rect.box`).node();
    return node && node.getBoundingClientRect();
  }

  #screenPlace(item) { const r = this.#rectangle(item); return r && { x: r.x, y: r.y }; }

  #keepInPlace(item, before) {
    const after = this.#screenPlace(item);
    if (!before || !after) return;
    const { k } = this.svg.node().__zoom;
    this.svg.call(this.zoom.translateBy, (before.x - after.x) / k, (before.y - after.y) / k);
  }

  // All of it, or as much of its beginning as can be read.
  fit(animate = true, least = 0.05) {
    const { width, height } = this.svg.node().getBoundingClientRect();
    const scale = Math.min(1.15, 0.95 * width / this.size.width, (height - 60) / this.size.height);
    const k = Math.max(scale, least);
    const left = (width - k * this.size.width) / 2;
    const top = Math.max((height + 40 - k * this.size.height) / 2, 46);
    this.#go(zoomIdentity.translate(left, top).scale(k), animate);
  }

  by(factor) { this.svg.transition().duration(180).call(this.zoom.scaleBy, factor); }

  #go(transform, animate) {
    (animate ? this.svg.transition().duration(260) : this.svg).call(this.zoom.transform, transform);
  }

  // Unfolds what holds an item, and brings it to the middle.
  reveal(path) {
    const added = path.slice(1, -1).filter((item) => item.isGroup && !this.isOpen(item));
    added.forEach((item) => this.open.add(item.path));
    if (added.length) this.render();
    this.center(path.at(-1));
  }

  center(item) {
    const box = this.#rectangle(item);
    if (!box) return;
    const view = this.svg.node().getBoundingClientRect();
    const now = this.svg.node().__zoom;
    const x = (box.x + box.width / 2 - view.x - now.x) / now.k;
    const y = (box.y + box.height / 2 - view.y - now.y) / now.k;
    const k = Math.max(now.k, 0.8);
    this.#go(zoomIdentity.translate(view.width / 2 - k * x, view.height / 2 - k * y).scale(k), true);
  }

  foldAll() { this.open.clear(); this.render(); this.fit(); }

  unfoldMore() {
    const shown = [];
    const walk = (item) => item.children.forEach((child) => {
      if (child.isGroup) { if (this.isOpen(child)) walk(child); else shown.push(child); }
    });
    walk(this.program.root);
    let budget = 400 - this.boxes.size;
    for (const item of shown) {
      if (item.children.length > budget) break;
      budget -= item.children.length;
      this.open.add(item.path);
    }
    this.render();
    this.fit();
  }

  toolbar() {
    const button = (text, title, onclick) => element("button", { title, "aria-label": title, onclick }, text);
    return element("div", { class: "toolbar" },
      button("+", "zoom in", () => this.by(1.4)), button("−", "zoom out", () => this.by(1 / 1.4)),
      button("Fit", "show all", () => this.fit()), button("Unfold", "unfold one level more", () => this.unfoldMore()),
      button("Fold", "fold all groups", () => this.foldAll()));
  }
}
