// Numbers as people read them.

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

export function short(number, unit = "") {
  if (!number) return `0${unit ? " " + unit : ""}`;
  const [size, prefix] = PREFIXES.find(([least]) => Math.abs(number) >= least) ?? PREFIXES.at(-1);
  const scaled = number / size;
  const digits = Math.abs(scaled) >= 100 ? 0 : Math.abs(scaled) >= 10 ? 1 : 2;
  const text = scaled.toFixed(digits).replace(/\.?0+$/, (zeros) => (zeros.startsWith(".") ? "" : zeros));
  return `${text}${prefix || unit ? " " : ""}${prefix}${unit}`;
}

export const METRICS = {
  seconds: { label: "Time", unit: "s", title: "measured time of the kernels that compute the line" },
  flops: { label: "FLOP", unit: "FLOP", title: "operations on numbers" },
  bytes: { label: "Bytes", unit: "B", title: "bytes read and written if nothing is fused" },
  peak: { label: "At peak", unit: "B", title: "bytes made by the line that live at the peak of memory" },
};

export const real = (number) =>
  number === null || number === undefined ? "–" : Math.abs(number) >= 1e5 || (number && Math.abs(number) < 1e-3)
    ? number.toExponential(2) : String(Number(number.toPrecision(4)));

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}
