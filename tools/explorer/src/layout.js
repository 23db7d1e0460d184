// Where nodes lie: each unfolded group is laid out by itself with dagre, and then is a node of the group around it. So a
// layout never has more than the children of one group, and what is folded costs nothing.
import dagre from "@dagrejs/dagre";

const TITLE = 30;
const MARGIN = 14;
const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map();

export function textWidth(text, font) {
  const key = font + text;
  if (!widths.has(key)) { canvas.font = font; widths.set(key, canvas.measureText(text).width); }
  return widths.get(key);
}

export const FONTS = { label: "600 12.5px ui-sans-serif, system-ui, sans-serif", small: "11px ui-monospace, monospace" };

export function secondLine(item) {
  if (!item.isGroup) {
    const out = item.all.programs[item.program].equations.out[item.equation];
    const types = out.map((v) => item.all.typeOf(item.program, v)[0]);
    return types.length > 2 ? `${types[0]} … ${types.length} results` : types.join(" ");
  }
  const count = item.count;
  return [item.detail, `${count.toLocaleString("en")} operation${count === 1 ? "" : "s"}`].filter(Boolean).join(" · ");
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function nodeTexts(item) {
  return [shortened(item.label, 42), shortened(secondLine(item), 44)];
}

function sizeOf(item) {
  const [first, second] = nodeTexts(item);
  const width = Math.max(textWidth(first, FONTS.label), textWidth(second, FONTS.small)) + 28 + (item.isGroup ? 16 : 0);
  return { width: Math.max(Math.ceil(width), 74), height: 44 };
}

// The boxes of a group's children, relative to the group: {width, height, boxes: [{item, x, y, ...}], edges}.
export function layOut(item, isOpen) {
  const children = item.children;
  const key = children.map((child) => (child.isGroup && isOpen(child) ? layoutKey(child, isOpen) : "")).join(",");
  if (item._layout?.key === key) return item._layout;
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const inner = new Map();
  children.forEach((child, n) => {
    if (child.isGroup && isOpen(child)) {
      const layout = layOut(child, isOpen);
      inner.set(n, layout);
      const title = textWidth(child.label, FONTS.label) + textWidth(secondLine(child), FONTS.small) + 70;
      graph.setNode(String(n), { width: Math.max(layout.width, title), height: layout.height + TITLE });
    } else graph.setNode(String(n), sizeOf(child));
  });
  item.edges.forEach(({ from, to }) => graph.setEdge(String(from), String(to)));
  dagre.layout(graph);
  const size = graph.graph();
  const boxes = children.map((child, n) => {
    const { x, y, width, height } = graph.node(String(n));
    return { item: child, x: x - width / 2, y: y - height / 2, width, height, layout: inner.get(n) };
  });
  const edges = item.edges.map((edge) => ({
    ...edge, points: graph.edge(String(edge.from), String(edge.to)).points,
  }));
  item._layout = { key, width: size.width, height: size.height, boxes, edges };
  return item._layout;
}

function layoutKey(item, isOpen) {
  return `(${item.children.map((child) => (child.isGroup && isOpen(child) ? layoutKey(child, isOpen) : "")).join(",")})`;
}

export { TITLE };
