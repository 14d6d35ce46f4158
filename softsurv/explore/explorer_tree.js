"use strict";
/* The tree as a picture whose leaves are buttons: side by side where they fit the page, else a line for each leaf. */
const treePicture = (model, escape, share) => {
  const INK = "#1a1a1a", MUTED = "#5f6670", LINE = 13, SMALLEST = 0.78;
  const branches = model.nodes.filter((n) => n.leaf < 0), ends = model.nodes.filter((n) => n.leaf >= 0);
  const pen = document.createElement("canvas").getContext("2d");
  const wide = (texts) => {
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    return Math.max(0, ...texts.map((text) => pen.measureText(text).width));
  };
  const boxes = new Map(branches.map((n) => [n, {width: wide(n.lines) + 14, height: n.lines.length * LINE + 8}]));
  const tallest = Math.max(0, ...branches.map((n) => boxes.get(n).height));
  const words = (n) => [`n = ${model.leaves[n.leaf].n}, events = ${model.leaves[n.leaf].events}`, model.leaves[n.leaf].median];

  /* Both layouts: the middle of a rule, the line from a parent to a child, where the answer stands on it, a leaf's box. */
  function across() {
    const W = Math.max(150, wide(ends.flatMap(words)) + 14) + 20, L = Math.max(96, tallest + 62), top = model.depth * L;
    const x = (n) => (n.centre + 0.5) * W, y = (n) => (n.leaf < 0 ? (n.level + 0.42) * L : top);
    const west = (p, n) => x(n) < x(p);
    return {
      width: ends.length * W,
      height: top + 74,
      rule: (n) => [x(n), y(n)],
      line: (p, n) => `M${x(p)} ${y(p)}H${x(n)}V${y(n)}`,
      answer: (p, n) => [x(n) + (west(p, n) ? 5 : -5), y(p) + boxes.get(p).height / 2 + 14, west(p, n) ? "start" : "end"],
      leaf: (n) => ({x: x(n) - W / 2 + 10, y: top, width: W - 20, height: 60}),
      lines: (n) => [`leaf ${n.leaf}`, ...words(n)],
    };
  }

  function sideways() {
    const indent = model.soft ? 84 : 48, trunk = 14, row = tallest + 12;
    const left = (n) => 2 + n.level * indent, y = (n) => 2 + n.height * row;
    const line = (n) => `leaf ${n.leaf}: ${words(n).join(", ")}`.replace("observed median", "median"); /* as the page says above */
    const panels = Math.max(...branches.map((n) => left(n) + boxes.get(n).width)) + (model.soft ? 70 : 40);
    const W = 1.06 * wide(ends.map(line)) + 20; /* the chosen leaf is in bold */
    return {
      width: panels + W + 4,
      height: ends.length * row + 4,
      rule: (n) => [left(n) + boxes.get(n).width / 2, y(n)],
      line: (p, n) => `M${left(p) + trunk} ${y(p)}V${y(n)}H${n.leaf < 0 ? left(n) : panels}`,
      answer: (p, n) => [left(p) + trunk + 5, y(n) + 4, "start"],
      leaf: (n) => ({x: panels, y: y(n) - 12, width: W, height: 24}),
      lines: (n) => [line(n)],
    };
  }

  function layout(room) {
    const beside = across();
    return beside.width <= room || branches.length === 0 ? beside : sideways();
  }

  function edges(at, path) {
    const on = new Map(path.steps.map((s) => [s.left ? model.nodes[s.node].left : model.nodes[s.node].right, s]));
    const order = model.nodes.map((n, k) => k).filter((k) => model.nodes[k].parent >= 0).sort((a, b) => on.has(a) - on.has(b));
    const lines = order.map((k) => `<path d="${at.line(model.nodes[model.nodes[k].parent], model.nodes[k])}" fill="none" stroke="${on.has(k) ? INK : "#b9bec5"}" stroke-width="${on.has(k) ? 3 : 1}"/>`);
    const answers = order.map((k) => {
      const n = model.nodes[k], p = model.nodes[n.parent], step = on.get(k), [x, y, anchor] = at.answer(p, n);
      const text = (p.left === k ? "yes" : "no") + (step && step.probability !== null ? ` ${share(step.probability)}` : "");
      return `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="${step ? INK : MUTED}" stroke="#fff" stroke-width="5" paint-order="stroke">${escape(text)}</text>`;
    });
    return [...lines, ...answers];
  }

  function rule(at, n) {
    const {width, height} = boxes.get(n), [x, y] = at.rule(n);
    const lines = n.lines.map((text, i) => `<text x="${x}" y="${y - height / 2 + 15 + LINE * i}" text-anchor="middle">${escape(text)}</text>`);
    return `<rect x="${x - width / 2}" y="${y - height / 2}" width="${width}" height="${height}" rx="5" fill="#f3f5f7" stroke="${MUTED}"/>${lines.join("")}`;
  }

  function leaf(at, n, chosen) {
    const own = model.leaves[n.leaf], {x, y, width, height} = at.leaf(n), lines = at.lines(n);
    const bold = (i) => (i === 0 && (chosen || lines.length > 1) ? ' font-weight="600"' : "");
    const text = lines.map((t, i) => `<text x="${x + width / 2}" y="${y + (lines.length > 1 ? 18 : 16) + 16 * i}" text-anchor="middle"${bold(i)}>${escape(t)}</text>`);
    return (
      `<g role="button" tabindex="0" data-leaf="${n.leaf}" aria-pressed="${chosen}" aria-label="leaf ${n.leaf}, ${own.n} rows">` +
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${chosen ? "#fff" : "#f8f9fa"}" stroke="${own.color}" stroke-width="${chosen ? 4 : 1.5}"/>${text.join("")}</g>`
    );
  }

  /* Draw into a box that scrolls, and bring the chosen leaf into sight. A little too wide: smaller rather than cut off. */
  return (box, path, chosen) => {
    const at = layout(box.clientWidth);
    const shrunk = SMALLEST * at.width <= box.clientWidth ? ' style="max-width:100%;height:auto"' : "";
    const parts = [...edges(at, path), ...branches.map((n) => rule(at, n)), ...ends.map((n) => leaf(at, n, n.leaf === chosen))];
    box.innerHTML = `<svg width="${at.width}" height="${at.height}"${shrunk} viewBox="0 0 ${at.width} ${at.height}" font-size="11" fill="${INK}" role="group" aria-label="tree">${parts.join("")}</svg>`;
    const {x, y, width, height} = at.leaf(ends.find((n) => n.leaf === chosen));
    if (x < box.scrollLeft || x + width > box.scrollLeft + box.clientWidth) box.scrollLeft = x + width - box.clientWidth;
    if (y < box.scrollTop || y + height > box.scrollTop + box.clientHeight) box.scrollTop = y + (height - box.clientHeight) / 2;
  };
};
