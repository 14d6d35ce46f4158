"use strict";
/* The tree's arithmetic on plain numbers: encode a row, route it, evaluate its curve, find the nearest other leaf. */
const softsurv = (() => {
  const sigmoid = (v) => (v >= 0 ? 1 / (1 + Math.exp(-v)) : Math.exp(v) / (1 + Math.exp(v)));

  /* The tail's continued fraction, for x >= 2: erfc(x) = exp(-x^2) / (sqrt(pi) tail(x)). */
  function tail(x) {
    let fraction = 0;
    for (let n = 80; n > 0; n--) fraction = n / 2 / (x + fraction);
    return x + fraction;
  }

  /* Complementary error function: continued fraction in the tail, Maclaurin series near 0. */
  function erfc(x) {
    if (x < 0) return 2 - erfc(-x);
    if (x > 27) return 0;
    if (x >= 2) return Math.exp(-x * x) / Math.sqrt(Math.PI) / tail(x);
    let term = x, sum = x;
    for (let n = 1; n < 60; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * sum;
  }

  /* Its logarithm, which is finite where erfc itself is 0. */
  const logErfc = (x) => (x < 2 ? Math.log(erfc(x)) : -x * x - Math.log(Math.sqrt(Math.PI) * tail(x)));

  const survivalOf = {
    proportional_hazards: (z) => Math.exp(-Math.exp(z)),
    proportional_odds: (z) => sigmoid(-z),
    probit: (z) => 0.5 * erfc(z / Math.SQRT2),
  };

  /* Encoded features of a raw row {source: value}; a missing value takes the training fill, or is null where it is routed. */
  function encode(model, row) {
    return model.columns.map((column) => {
      const given = row[column.source];
      const missing = given === null || given === undefined;
      if (column.kind === "missing") return missing ? 1 : 0;
      const value = missing ? model.fills[column.source] : given;
      if (column.kind === "number" && value === null) return null;
      if (column.kind === "number") return (value - column.offset) / column.scale;
      return String(value) === column.level ? 1 : 0;
    });
  }

  function margin(model, split, x, row) {
    if (split.weights) return split.weights.slice(1).reduce((sum, w, k) => sum + w * x[k], split.weights[0]);
    const given = row[split.source];
    const gone = given === null || given === undefined;
    if (split.missing !== null && gone) return split.missing ? 1 : -1;
    if (!split.levels && split.threshold === undefined) return -1; // the question is whether the value is missing
    const value = given === null || given === undefined ? model.fills[split.source] : given;
    if (split.levels) return split.levels.includes(String(value)) ? 1 : -1;
    return value <= split.threshold ? 1 : -1;
  }

  /* Path of a row: nodes with their margin, the probability of the side taken (null at a hard split), the leaf. */
  function route(model, row) {
    const x = encode(model, row);
    const steps = [];
    let at = 0;
    while (model.nodes[at].leaf < 0) {
      const node = model.nodes[at];
      const value = margin(model, node.split, x, row);
      const left = value >= 0;
      const p = model.soft ? sigmoid(left ? value : -value) : null;
      steps.push({node: at, left, margin: value, probability: p});
      at = left ? node.left : node.right;
    }
    return {steps, leaf: model.nodes[at].leaf, node: at, x};
  }

  /* Probability of going left at every branch node, in the order of the nodes. */
  const routing = (model, row) => {
    const x = encode(model, row);
    return model.nodes.filter((n) => n.leaf < 0).map((n) => sigmoid(margin(model, n.split, x, row)));
  };

  const hazardOf = {
    proportional_hazards: (z) => Math.exp(Math.min(z, 30)) * (Math.max(z, 30) - 29), // safe_exp of the estimators
    proportional_odds: (z) => Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z))),
    probit: (z) => Math.LN2 - logErfc(z / Math.SQRT2),
  };

  const linear = (weights, x) => weights.slice(1).reduce((sum, w, k) => sum + w * x[k], weights[0]);

  /* Survival on the model's times, in the leaf at the end of the row's path. */
  function curve(model, row) {
    const {leaf, x} = route(model, row);
    const own = model.leaves[leaf];
    if (own.survival) return own.survival;
    if (own.causes) return incidences(model, row).free;
    const offset = linear(own.weights, x);
    return own.baseline.map((b) => (b === null ? 1 : survivalOf[model.link](offset + b)));
  }

  /* What each cumulative incidence rises by over a step: all hazards before it, and the rise of each. */
  function stepOf(total, rise) {
    const whole = rise.reduce((sum, v) => sum + v, 0);
    return rise.map((v) => (whole > 0 ? (Math.exp(-total) * -Math.expm1(-whole) * v) / whole : 0));
  }

  /* Probability of no event, and of each cause, on the model's times. */
  function incidences(model, row) {
    const {leaf, x} = route(model, row);
    const own = model.leaves[leaf];
    if (own.incidences) return {free: own.survival, causes: own.incidences};
    const {links, steps, place} = model.causes;
    const hazards = own.causes.map((one, k) => {
      const offset = linear(one.weights, x);
      return one.baseline.map((b) => (b === null ? 0 : hazardOf[links[k]](offset + b)));
    });
    const at = (g) => hazards.map((h) => (g < 0 ? 0 : h[g]));
    const total = [0], risen = [hazards.map(() => 0)];
    for (let g = 0; g < steps; g++) {
      const before = at(g - 1), rise = at(g).map((h, k) => h - before[k]);
      const up = stepOf(total[g], rise);
      total.push(total[g] + rise.reduce((sum, v) => sum + v, 0));
      risen.push(risen[g].map((v, k) => v + up[k]));
    }
    const free = [], causes = hazards.map(() => []);
    place.forEach((p, t) => {
      const before = at(p - 1), rise = at(steps + t).map((h, k) => Math.max(h - before[k], 0));
      stepOf(total[p], rise).forEach((v, k) => causes[k].push(risen[p][k] + v));
      free.push(Math.exp(-total[p] - rise.reduce((sum, v) => sum + v, 0)));
    });
    return {free, causes};
  }

  /* First time at which a curve falls to a level, by interpolation on the grid; null if it never does. */
  function timeAt(model, values, level) {
    const k = values.findIndex((v) => v <= level);
    if (k < 0) return null;
    if (k === 0) return model.times[0];
    const share = (values[k - 1] - level) / (values[k - 1] - values[k]);
    return model.times[k - 1] + share * (model.times[k] - model.times[k - 1]);
  }

  /* Predicted median of a row: that of its leaf where rows of a leaf share a curve, else read off the grid. */
  function median(model, row) {
    const own = model.leaves[route(model, row).leaf];
    return own.half === undefined ? timeAt(model, curve(model, row), 0.5) : own.half;
  }

  /* Values of a numeric feature at which some decision on the row's path flips. */
  function boundaries(model, path, row, source) {
    const column = model.columns.findIndex((c) => c.source === source.name && c.kind === "number");
    const found = [];
    for (const step of path.steps) {
      const split = model.nodes[step.node].split;
      if (split.weights) {
        const slope = column < 0 ? 0 : split.weights[column + 1];
        if (slope === 0) continue;
        const {offset, scale} = model.columns[column];
        found.push((path.x[column] - step.margin / slope) * scale + offset);
      } else if (split.source === source.name && split.threshold !== undefined) {
        found.push(split.threshold);
      }
    }
    return found;
  }

  /* For every feature the smallest change, alone, that leads the row to another leaf; nearest first. */
  function crossings(model, row) {
    const path = route(model, row);
    const found = [];
    for (const source of model.sources) {
      const span = source.high - source.low || 1;
      const trials = [];
      if (source.levels) {
        for (const level of source.levels) if (level !== String(row[source.name])) trials.push([level, 1]);
      } else if (row[source.name] !== null) {
        for (const edge of boundaries(model, path, row, source)) {
          const below = Math.floor(edge); // of whole numbers the boundary itself may be on either side
          const beside = source.whole ? [below - 1, below, below + 1, below + 2] : [edge - 1e-6 * span, edge + 1e-6 * span];
          for (const value of beside) {
            if (value >= source.low && value <= source.high) trials.push([value, Math.abs(value - row[source.name]) / span, edge]);
          }
        }
      }
      trials.sort((a, b) => a[1] - b[1]);
      for (const [value, effort, edge] of trials) {
        const leaf = route(model, {...row, [source.name]: value}).leaf;
        if (leaf !== path.leaf) {
          found.push({feature: source.name, from: row[source.name], to: value, beyond: source.whole || source.levels ? null : edge, span, effort, leaf});
          break;
        }
      }
    }
    return found.sort((a, b) => a.effort - b.effort);
  }

  /* Positions of the rows of the same leaf that are nearest, every feature in shares of its range over the rows. */
  function neighbours(model, encoded, leaves, position, count) {
    const own = encoded[position];
    const part = (v, k) => (v === null || own[k] === null ? 0 : ((v - own[k]) / model.columns[k].spread) ** 2);
    const distance = (other) => Math.sqrt(other.reduce((sum, v, k) => sum + part(v, k), 0));
    return encoded
      .map((other, k) => [k, leaves[k] === leaves[position] && k !== position ? distance(other) : Infinity])
      .filter((pair) => pair[1] < Infinity)
      .sort((a, b) => a[1] - b[1])
      .slice(0, count);
  }

  return {encode, route, routing, curve, incidences, median, crossings, neighbours};
})();
