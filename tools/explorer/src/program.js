// The model as the page asks for it: items that unfold, costs by item and by line, and who calls whom.
// Everything about a program of thousands of equations is computed when it is first asked for.

export class Program {
  constructor(model) {
    this.model = model;
    this.tables = model.tables;
    this.programs = model.programs;
    this.hasTimes = Boolean(model.measured);
    this.producers = model.programs.map(() => null);
    this.secondsOfPlace = this.#secondsOfPlaces();
    this.peakOfEquation = new Map();
    for (const [maker, , , bytes] of model.memory.alive) {
      if (maker !== null) this.peakOfEquation.set(`${maker}`, (this.peakOfEquation.get(`${maker}`) ?? 0) + bytes);
    }
    this.linesCosts = this.#lineCosts();
    this.callers = this.#callers();
    this.root = new Item(this, null, { program: 0, fold: model.programs[0].fold, kind: "program", label: model.name, path: "r" });
  }

  get metrics() { return ["seconds", "flops", "bytes", "peak"].filter((name) =>
    name === "seconds" ? this.hasTimes : name === "flops" ? this.model.counted !== false
      : name === "peak" ? this.model.memory.alive.length > 0 : true); }

  producer(program, value) {
    if (!this.producers[program]) {
      const found = new Map();
      this.programs[program].equations.out.forEach((outs, i) => outs.forEach((v) => found.set(v, i)));
      this.producers[program] = found;
    }
    return this.producers[program].get(value);
  }

  typeOf(program, value) {
    return typeof value === "number" ? this.tables.types[this.programs[program].values[value]] : [value, 0];
  }

  placeName(place) {
    if (place < 0) return "";
    const [file, line] = this.tables.places[place];
    return `${this.tables.files[file].name.split(/[\\/]/).at(-1)}:${line}`;
  }

  #secondsOfPlaces() {
    const found = new Map();
    if (!this.hasTimes) return found;
    for (const kernel of this.model.compiled.kernels) {
      kernel.seconds = this.model.measured.kernels[kernel.name] ?? 0;
      if (["loop", "call", "branches"].includes(kernel.kind)) continue; // their time is that of the kernels inside
      const total = kernel.places.reduce((sum, [, count]) => sum + count, 0);
      for (const [place, count] of kernel.places) {
        found.set(place, (found.get(place) ?? 0) + (kernel.seconds * count) / total);
      }
    }
    return found;
  }

  #lineCosts() {
    const rows = new Map();
    const row = (place) => {
      if (!rows.has(place)) {
        rows.set(place, { place, count: 0, flops: 0, bytes: 0, peak: 0, weight: 0,
          seconds: this.secondsOfPlace.get(place) ?? 0, equations: [] });
      }
      return rows.get(place);
    };
    this.programs.forEach((program, p) => {
      const { place, cost } = program.equations;
      for (let i = 0; i < place.length; i++) {
        const found = row(place[i]);
        found.equations.push([p, i]);
        if (program.inside[i]) continue;
        found.count += program.times;
        found.flops += program.times * cost[i][0];
        found.bytes += program.times * cost[i][1];
        found.weight += program.times * (cost[i][0] + cost[i][1]);
        found.peak += this.peakOfEquation.get(`${p},${i}`) ?? 0;
      }
    });
    for (const place of this.secondsOfPlace.keys()) row(place);
    return rows;
  }

  #callers() {
    const found = new Map([[0, null]]);
    const waiting = [0];
    while (waiting.length) {
      const p = waiting.shift();
      for (const [i, call] of Object.entries(this.programs[p].inside)) {
        for (const [, inner] of call.programs) {
          if (!found.has(inner)) { found.set(inner, [p, Number(i)]); waiting.push(inner); }
        }
      }
    }
    return found;
  }

  // The cost of one equation in all calls of its program. A line's time is shared by what its equations do.
  costOf(p, i) {
    const program = this.programs[p];
    const [flops, bytes] = program.equations.cost[i];
    const call = program.inside[i];
    const cost = { flops: flops * program.times, bytes: bytes * program.times, seconds: 0,
      peak: this.peakOfEquation.get(`${p},${i}`) ?? 0 };
    if (call) {
      // A program that several equations call has what all of them have.
      for (const [, inner] of call.programs) {
        const { seconds, peak } = this.#sums(inner);
        cost.seconds += seconds / this.#callsOf(inner);
        cost.peak += peak / this.#callsOf(inner);
      }
    } else if (this.hasTimes) {
      const line = this.linesCosts.get(program.equations.place[i]);
      const weight = line.weight ? (cost.flops + cost.bytes) / line.weight : 1 / line.equations.length;
      cost.seconds = (this.secondsOfPlace.get(program.equations.place[i]) ?? 0) * weight;
    }
    return cost;
  }

  #programSums = new Map();
  #sums(p) {
    if (!this.#programSums.has(p)) {
      const sums = { seconds: 0, peak: 0 };
      for (let i = 0; i < this.programs[p].equations.op.length; i++) {
        const { seconds, peak } = this.costOf(p, i);
        sums.seconds += seconds;
        sums.peak += peak;
      }
      this.#programSums.set(p, sums);
    }
    return this.#programSums.get(p);
  }

  #calls = null;
  #callsOf(p) {
    if (!this.#calls) {
      this.#calls = new Map();
      for (const program of this.programs) {
        for (const call of Object.values(program.inside)) {
          for (const [, inner] of call.programs) this.#calls.set(inner, (this.#calls.get(inner) ?? 0) + 1);
        }
      }
    }
    return this.#calls.get(p) ?? 1;
  }

  // The items from the root down to an equation.
  pathTo(p, i) {
    const calls = [];
    for (let at = [p, i]; at; at = this.callers.get(at[0])) calls.unshift(at);
    const path = [this.root];
    for (const [program, equation] of calls) {
      let item = path.at(-1);
      for (;;) {
        const next = item.children.find((child) => child.program === program && child.holds(equation))
          ?? item.children.find((child) => child.kind === "branch" && child.program === program);
        if (!next) return path;
        path.push(next);
        item = next;
        if (next.equation === equation && next.owner === program) break;
      }
    }
    return path;
  }

  search(text, most = 60) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const results = [];
    let count = 0;
    if (!words.length) return { results, count };
    const { operations, scopes, types } = this.tables;
    this.programs.forEach((program, p) => {
      const { op, scope, out, place } = program.equations;
      for (let i = 0; i < op.length; i++) {
        const text = `${operations[op[i]]} ${scopes[scope[i]]} ${out[i].map((v) => types[program.values[v]][0]).join(" ")} `
          + `${this.placeName(place[i])} ${program.name}`;
        const lower = text.toLowerCase();
        if (words.every((word) => lower.includes(word))) {
          count++;
          if (results.length < most) results.push([p, i]);
        }
      }
    });
    // Operations whose name begins with what was typed come first.
    const name = ([p, i]) => operations[this.programs[p].equations.op[i]];
    results.sort((a, b) => name(b).startsWith(words[0]) - name(a).startsWith(words[0]));
    return { results, count };
  }
}

// What the graph shows as one node: an operation, or a group that unfolds.
export class Item {
  constructor(owner, parent, { program, fold, kind, label, path, equation = null, detail = "" }) {
    Object.assign(this, { all: owner, parent, program, fold, kind, label, path, equation, detail });
    this.owner = program; // the program whose equation it is
    this.isGroup = fold !== null;
    this.depth = parent ? parent.depth + 1 : 0;
  }

  get children() {
    if (!this._children) {
      const call = this.equation !== null ? this.all.programs[this.program].inside[this.equation] : null;
      if (call && call.programs.length > 1) {
        this._children = call.programs.map(([role, inner], n) => new Item(this.all, this, {
          program: inner, fold: this.all.programs[inner].fold, kind: "branch", label: role,
          detail: this.all.programs[inner].name, path: `${this.path}/b${n}`,
        }));
      } else {
        const program = call ? call.programs[0][1] : this.program;
        const fold = call ? this.all.programs[program].fold : this.fold;
        this._children = fold.map((child, n) => this.#child(program, child, `${this.path}/${n}`));
      }
    }
    return this._children;
  }

  #child(program, child, path) {
    if (Array.isArray(child)) {
      const [kind, label, fold] = child;
      return new Item(this.all, this, { program, fold, kind, label, path });
    }
    const { equations, inside } = this.all.programs[program];
    const label = this.all.tables.operations[equations.op[child]];
    const call = inside[child];
    if (!call) return new Item(this.all, this, { program, fold: null, kind: "operation", label, path, equation: child });
    const name = call.programs.length === 1 ? this.all.programs[call.programs[0][1]].name : "";
    const turns = call.turns === 1 ? "" : call.turns === null ? "× ?" : `× ${call.turns}`;
    return new Item(this.all, this, {
      program, fold: [], kind: call.turns === 1 ? (call.programs.length > 1 ? "branches" : "call") : "loop",
      label: name && !name.startsWith(label) ? `${label} ${name}` : label, detail: turns, path, equation: child,
    });
  }

  // The equations of its program that it stands for.
  get equations() {
    if (!this._equations) {
      if (this.equation !== null) this._equations = [this.equation];
      else {
        this._equations = [];
        const walk = (fold) => fold.forEach((each) => (Array.isArray(each) ? walk(each[2]) : this._equations.push(each)));
        walk(this.fold);
      }
    }
    return this._equations;
  }

  holds(equation) {
    this._set ??= new Set(this.equations);
    return this._set.has(equation);
  }

  get cost() {
    if (!this._cost) {
      this._cost = { flops: 0, bytes: 0, seconds: 0, peak: 0 };
      for (const i of this.equations) {
        const cost = this.all.costOf(this.program, i);
        for (const name of Object.keys(cost)) this._cost[name] += cost[name];
      }
    }
    return this._cost;
  }

  // The user's lines in it, those of programs inside as well.
  get places() {
    if (!this._places) {
      this._places = new Set();
      const seen = new Set();
      const add = (p, numbers) => {
        const { equations, inside } = this.all.programs[p];
        for (const i of numbers) {
          this._places.add(equations.place[i]);
          for (const [, inner] of inside[i]?.programs ?? []) {
            if (!seen.has(inner)) { seen.add(inner); add(inner, this.all.programs[inner].equations.op.keys()); }
          }
        }
      };
      add(this.program, this.equations);
    }
    return this._places;
  }

  get count() {
    if (this._count === undefined) {
      this._count = 0;
      const { inside } = this.all.programs[this.program];
      for (const i of this.equations) {
        this._count += 1;
        for (const [, inner] of inside[i]?.programs ?? []) this._count += this.all.programs[inner].equations.op.length;
      }
    }
    return this._count;
  }

  // Which children feed which: pairs of numbers of children, with the value that goes between them.
  get edges() {
    if (!this._edges) {
      const owner = new Map();
      const children = this.children;
      this._edges = [];
      if (children.length && children.some((child) => child.kind === "branch")) return this._edges;
      children.forEach((child, n) => child.equations.forEach((i) => owner.set(i, n)));
      const seen = new Map();
      children.forEach((child, n) => {
        const { equations } = this.all.programs[child.program];
        for (const i of child.equations) {
          for (const v of equations.in[i]) {
            if (typeof v !== "number") continue;
            const from = owner.get(this.all.producer(child.program, v));
            if (from === undefined || from === n) continue;
            const key = `${from}>${n}`;
            if (seen.has(key)) seen.get(key).values.push(v);
            else { const edge = { from, to: n, program: child.program, values: [v] }; seen.set(key, edge); this._edges.push(edge); }
          }
        }
      });
    }
    return this._edges;
  }
}
