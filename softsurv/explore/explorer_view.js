"use strict";
/* The interactive page: tree, curves, and panels for a leaf, a row and a moved row. */
const explorer = (model) => {
  const rows = model.rows;
  const paths = rows.map((row) => softsurv.route(model, row));
  const encoded = paths.map((p) => p.x);
  const leaves = paths.map((p) => p.leaf);
  const curves = rows.map((row) => softsurv.curve(model, row));
  const state = {leaf: leaves[0], row: 0, moved: null};
  const byId = (id) => document.getElementById(id);
  const unit = model.unit ? " " + model.unit : "";
  const INK = "#1a1a1a", MUTED = "#5f6670", MOVED = "#b3006b";
  const CAUSES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999"];

  /* A mark ends words that are written from the right, and stands for characters that turn the order: the rule behind a name would be shown the other way round. */
  const FROM_RIGHT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc", END = new RegExp(`([${FROM_RIGHT}])(?=\\s*(?:[^${FROM_RIGHT}\\s]|$))`, "g");
  const exactly = (text) => text.replace(/[&<>"]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
  const escape = (text) => exactly(String(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd").replace(END, "$1\u200e"));
  /* A whole number in full, as a rule may part it from the next one; medians and shares need four digits. Empty text is quoted. */
  const number = (v, digits = 6) => (v === null || v === undefined ? "missing" : typeof v !== "number" ? v || '""' : String(Number.isInteger(v) ? v : Number(v.toPrecision(digits))));
  const share = (p) => (p === null ? "" : p > 0.995 ? "> 0.99" : p.toFixed(2));
  const isLong = (c) => (String(c).replace(/<[^>]*>/g, "").length > 24 ? ' class="long"' : "");
  const table = (head, body) =>
    `<div class="scroll" tabindex="0"><table><thead><tr>${head.map((h) => `<th scope="col">${escape(h)}</th>`).join("")}</tr></thead>` +
    `<tbody>${body.map((r) => `<tr>${r.map((c) => `<td${isLong(c)}>${c}</td>`).join("")}</tr>`).join("")}</tbody></table></div>`;
  const rounded = (v, span) => String(Number(v.toFixed(Math.min(100, Math.max(0, 6 - Math.floor(Math.log10(span)))))));
  const beyond = (c) => (c.beyond === null ? number(c.to) : (c.to > c.from ? "above " : "below ") + rounded(c.beyond, c.span));
  const rowButton = (k) => `<button type="button" class="link" data-row="${k}">row ${escape(model.labels[k])}</button>`;

  const happened = (k) => (model.outcome[k][1] ? escape(model.outcome[k][2] || "yes") : "no");

  function current() {
    return state.moved || rows[state.row];
  }

  const picture = treePicture(model, escape, share);
  const drawTree = () => picture(byId("tree"), softsurv.route(model, current()), state.leaf);

  /* ---- curves ---- */
  /* A chart of probabilities over the model's times: its size, places, and the axes as parts. */
  function chart(id, label) {
    const W = Math.max(340, Math.min(560, byId(id).clientWidth || 560)), H = 330, l = 54, b = 40, t = 8, r = 12, end = model.times[model.times.length - 1];
    const x = (v) => l + (v / end) * (W - l - r), y = (s) => t + (1 - s) * (H - t - b);
    const line = (values) => values.map((s, k) => `${k ? "L" : "M"}${x(model.times[k]).toFixed(1)} ${y(s).toFixed(1)}`).join("");
    const parts = [0, 0.25, 0.5, 0.75, 1].map((s) => `<path d="M${l} ${y(s)}H${W - r}" stroke="#e3e6ea"/><text x="${l - 6}" y="${y(s) + 4}" text-anchor="end">${s}</text>`);
    model.ticks.forEach((v) => parts.push(`<path d="M${x(v)} ${y(0)}v5" stroke="${MUTED}"/><text x="${x(v)}" y="${y(0) + 18}" text-anchor="middle">${number(v)}</text>`));
    parts.push(`<text x="${(l + W) / 2}" y="${H - 4}" text-anchor="middle">Time${model.unit ? " (" + escape(model.unit) + ")" : ""}</text>`);
    parts.push(`<text transform="translate(12 ${H / 2 - 10}) rotate(-90)" text-anchor="middle">${label}</text>`);
    const show = (name) => {
      byId(id).innerHTML = `<svg viewBox="0 0 ${W} ${H}" font-size="12" fill="${INK}" role="img" aria-label="${name}">${parts.join("")}</svg>`;
    };
    return {x, y, line, parts, show};
  }

  function drawCurves() {
    const {x, y, line, parts, show} = chart("curves", "Survival probability");
    const leaf = model.leaves[state.leaf];
    const shown = leaves.map((v, k) => k).filter((k) => leaves[k] === state.leaf);
    const step = Math.max(1, Math.floor(shown.length / 120));
    shown.filter((_, i) => i % step === 0).forEach((k) => parts.push(`<path d="${line(curves[k])}" fill="none" stroke="${leaf.color}" stroke-opacity="0.22"/>`));
    if (leaf.km.times.length) {
      const d = leaf.km.times.map((v, k) => (k ? `H${x(v).toFixed(1)}V${y(leaf.km.values[k]).toFixed(1)}` : `M${x(v)} ${y(leaf.km.values[0])}`)).join("");
      parts.push(`<path d="${d}" fill="none" stroke="${INK}" stroke-width="1.3"/>`);
    }
    const own = model.leaves[leaves[state.row]].color;
    parts.push(`<path d="${line(curves[state.row])}" fill="none" stroke="#fff" stroke-width="5"/><path d="${line(curves[state.row])}" fill="none" stroke="${own}" stroke-width="3"/>`);
    if (state.moved) parts.push(`<path d="${line(softsurv.curve(model, state.moved))}" fill="none" stroke="${MOVED}" stroke-width="3" stroke-dasharray="7 4"/>`);
    show("survival curves");
    byId("key").innerHTML =
      `<span style="color:${leaf.color}">━</span> rows of leaf ${state.leaf} (thin) · <span>━</span> their Kaplan-Meier curve · ` +
      `<span style="color:${own}">━</span> row ${escape(model.labels[state.row])} (thick)` + (state.moved ? ` · <span style="color:${MOVED}">╍</span> the row with moved features` : "");
    if (model.causes) drawCauses();
  }

  /* Mean probability of each cause over some rows, evenly taken: one row costs a pass over the whole grid. */
  function meanIncidences(some) {
    const taken = some.filter((_, i) => i % Math.max(1, Math.floor(some.length / 40)) === 0).map((k) => softsurv.incidences(model, rows[k]).causes);
    return model.causes.names.map((_, c) => model.times.map((_, t) => taken.reduce((sum, one) => sum + one[c][t], 0) / taken.length));
  }

  function drawCauses() {
    const {line, parts, show} = chart("causes", "Probability of each cause");
    const shown = leaves.map((v, k) => k).filter((k) => leaves[k] === state.leaf);
    const add = (values, c, look) => parts.push(`<path d="${line(values)}" fill="none" stroke="${CAUSES[c % CAUSES.length]}" ${look}/>`);
    if (shown.length) meanIncidences(shown).forEach((values, c) => add(values, c, 'stroke-width="1.3"'));
    softsurv.incidences(model, rows[state.row]).causes.forEach((values, c) => add(values, c, 'stroke-width="3"'));
    if (state.moved) softsurv.incidences(model, state.moved).causes.forEach((values, c) => add(values, c, 'stroke-width="3" stroke-dasharray="7 4"'));
    show("probability of each cause");
    byId("cause-key").innerHTML =
      model.causes.names.map((name, c) => `<span style="color:${CAUSES[c % CAUSES.length]}">━</span> ${escape(name)}`).join(" · ") +
      `; mean of leaf ${state.leaf} (thin), row ${escape(model.labels[state.row])} (thick)` + (state.moved ? ", moved (dashed)" : "");
  }

  /* ---- panels ---- */
  function leafPanel() {
    const leaf = model.leaves[state.leaf];
    const shown = leaves.map((v, k) => k).filter((k) => leaves[k] === state.leaf);
    const causes = leaf.by_cause.length ? ` (${leaf.by_cause.map(([name, n]) => `${escape(name)} ${n}`).join(", ")})` : "";
    const apart = leaf.apart.map((a) => a.map(escape));
    const names = model.strongest;
    const body = shown.slice(0, 200).map((k) => [rowButton(k), number(model.outcome[k][0]), happened(k), ...names.map((s) => escape(number(rows[k][s])))]);
    byId("leaf").innerHTML =
      `<h2>Leaf ${state.leaf}</h2><p>${leaf.n} rows, ${leaf.events} events${causes}, ${escape(leaf.median)}. Where: ${escape(leaf.rule)}.</p>` +
      (apart.length ? `<h3>What sets its rows apart</h3>${table(["feature", "here", "elsewhere", "in sd"], apart)}` : "") +
      `<h3>Its rows${shown.length > 200 ? ", the first 200" : ""}</h3>${shown.length ? table(["row", "time", "event", ...names], body) : "<p>No row arrives here.</p>"}`;
  }

  function causeWords(row) {
    if (!model.causes) return "";
    const last = model.times.length - 1, found = softsurv.incidences(model, row).causes;
    const words = model.causes.names.map((name, c) => `${escape(name)} ${(100 * found[c][last]).toFixed(0)}%`);
    return `<p>By ${number(model.times[last], 4)}${escape(unit)}: ${words.join(", ")}.</p>`;
  }

  function rowPanel() {
    const row = current(), path = softsurv.route(model, row);
    const steps = path.steps.map((s) => `<li>${escape(model.nodes[s.node].lines.join(" "))}: <b>${s.left ? "yes" : "no"}</b>${s.probability === null ? "" : ` with probability ${share(s.probability)}`}</li>`);
    const half = softsurv.median(model, row);
    const cross = softsurv.crossings(model, row).slice(0, 8).map((c) => [escape(c.feature), escape(number(c.from)), `<b>${escape(beyond(c))}</b>`, `leaf ${c.leaf}`]);
    const near = state.moved ? [] : softsurv.neighbours(model, encoded, leaves, state.row, 5);
    const nearBody = near.map(([k, d]) => [rowButton(k), d.toFixed(2), number(model.outcome[k][0]), happened(k)]);
    byId("row").innerHTML =
      `<h2>Row ${escape(model.labels[state.row])}${state.moved ? ", moved" : ""}</h2><ol>${steps.join("")}</ol>` +
      `<p>Ends in <b>leaf ${path.leaf}</b>; predicted median ${half === null ? "beyond the times shown" : number(half, 4) + escape(unit)}. ` +
      `Observed: ${number(model.outcome[state.row][0])}${escape(unit)}, ${model.outcome[state.row][1] ? escape(model.outcome[state.row][2] || "event") : "censored"}.</p>` +
      causeWords(row) +
      `<h3>Smallest single changes that lead to another leaf</h3>${cross.length ? table(["feature", "from", "to", "arrives in"], cross) : "<p>No single feature, within its range, leads elsewhere.</p>"}` +
      (nearBody.length ? `<h3>Nearest rows in the same leaf</h3>${table(["row", "distance", "time", "event"], nearBody)}` : "");
  }

  function movePanel() {
    const controls = model.sources.map((s, k) => {
      const own = rows[state.row][s.name], value = current()[s.name], id = `move-${k}`;
      if (s.levels) {
        const known = own === null || s.levels.includes(own) ? s.levels : [own, ...s.levels]; /* a level may be new */
        const options = known.map((v) => `<option value="${exactly(v)}"${value === v ? " selected" : ""}>${escape(number(v))}</option>`).join("");
        const gone = own === null ? `<option data-missing${value === null ? " selected" : ""}>missing</option>` : "";
        return `<label for="${id}">${escape(s.name)}</label><select id="${id}" data-move="${k}">${gone}${options}</select><output id="out-${k}"></output>`;
      }
      const at = value ?? model.fills[s.name] ?? s.low;
      return `<label for="${id}">${escape(s.name)}</label><input id="${id}" type="range" data-move="${k}" min="${s.low}" max="${s.high}" step="${s.step}" value="${at}"><output id="out-${k}">${number(value)}</output>`;
    });
    byId("move").innerHTML = `<h2>Move a feature</h2><p>Of row ${escape(model.labels[state.row])}, to see how its path and its curve change. This is the tree's view, not a promise of what would happen.</p><div class="sliders">${controls.join("")}</div><button type="button" id="reset">Back to the row as it is</button>`;
  }

  /* Give a feature a number or level, as text; null: missing. */
  function move(k, text) {
    const source = model.sources[k];
    const value = source.levels ? text : Number(text);
    state.moved = {...(state.moved || rows[state.row]), [source.name]: value};
    state.leaf = softsurv.route(model, state.moved).leaf;
    byId(`out-${k}`).textContent = source.levels ? "" : number(value);
    drawTree(); drawCurves(); leafPanel(); rowPanel();
  }

  function choose(change) {
    Object.assign(state, change);
    byId("pick").value = String(state.row);
    drawTree(); drawCurves(); leafPanel(); rowPanel(); movePanel();
  }

  const chooseRow = (k) => choose({row: k, leaf: leaves[k], moved: null});
  document.addEventListener("click", (event) => {
    const leaf = event.target.closest("[data-leaf]"), row = event.target.closest("[data-row]");
    const reset = event.target.id === "reset";
    if (!leaf && !row && !reset) return;
    if (leaf) choose({leaf: Number(leaf.dataset.leaf)});
    else chooseRow(row ? Number(row.dataset.row) : state.row);
    const drawn = leaf ? `[data-leaf="${leaf.dataset.leaf}"]` : row ? `#leaf [data-row="${row.dataset.row}"]` : "#reset";
    document.querySelector(drawn)?.focus(); /* what was clicked is drawn anew: keys go on from there */
  });
  document.addEventListener("keydown", (event) => {
    const leaf = event.target.closest && event.target.closest("[data-leaf]");
    if (!leaf || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    choose({leaf: Number(leaf.dataset.leaf)});
    document.querySelector(`[data-leaf="${leaf.dataset.leaf}"]`).focus();
  });
  document.addEventListener("input", (event) => {
    const {dataset, selectedOptions, value} = event.target;
    if (dataset.move !== undefined) move(Number(dataset.move), selectedOptions && "missing" in selectedOptions[0].dataset ? null : value);
  });
  /* A wheel at the end of the page goes on in the notebook: VS Code listens in its own page, where ours never arrive. */
  document.addEventListener("wheel", (event) => {
    if (!window.frameElement || event.ctrlKey) return;
    for (let box = event.target; box; box = box.parentElement) {
      const room = event.deltaY < 0 ? box.scrollTop : box.scrollHeight - box.clientHeight - box.scrollTop;
      if (room > 1 && (box === document.documentElement || box.matches(".scroll, .sliders"))) return;
    }
    window.frameElement.dispatchEvent(new WheelEvent("wheel", event));
  }, {passive: true});
  window.addEventListener("resize", () => { drawTree(); drawCurves(); });
  const picker = byId("pick");
  picker.innerHTML = model.labels.map((label, k) => `<option value="${k}">${escape(label)}</option>`).join("");
  picker.addEventListener("change", () => chooseRow(Number(picker.value)));
  chooseRow(0);
  return {state, choose, chooseRow, move};
};
