"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const steps = data.steps, actions = data.actions;
let now = 0, timer = null, wanted = 0;

// Chunks of steps are unpacked when they are needed; the last few stay.
class Packed {
  constructor(packed, floats) {
    Object.assign(this, packed);
    this.floats = floats;
    this.size = packed.shape.reduce((a, b) => a * b, 1) * (floats ? 4 : 1);
    this.open = new Map();
  }
  async at(step) {
    const t = Math.floor(step / this.every); // of some steps there may be no picture
    const number = Math.floor(t / this.chunk);
    if (!this.open.has(number)) {
      if (this.open.size > 3) this.open.delete(this.open.keys().next().value);
      this.open.set(number, this.unpack(this.chunks[number]));
    }
    const bytes = await this.open.get(number);
    const start = (t % this.chunk) * this.size;
    const one = bytes.subarray(start, start + this.size);
    return this.floats ? this.numbers(one) : one;
  }
  async unpack(text) {
    const raw = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    for (let i = this.size; i < bytes.length; i++) bytes[i] ^= bytes[i - this.size];
    return bytes;
  }
  numbers(bytes) { // four planes, the high bytes first
    const n = bytes.length / 4, view = new DataView(new ArrayBuffer(4));
    return Array.from({ length: n }, (_, i) => {
      for (let plane = 0; plane < 4; plane++) view.setUint8(plane, bytes[plane * n + i]);
      return view.getFloat32(0);
    });
  }
}
const values = new Packed(data.values, true);
const frames = new Packed(data.view.frames, ["numbers", "strokes"].includes(data.view.kind));
const options = data.candidates && new Packed(data.candidates, true); // of continuous actions
const dims = options ? data.candidates.shape[1] : 0;
let points = [];
const histograms = data.returns && new Packed(data.returns.roots, false);
const differ = [];
for (let t = 0; t < steps; t++) if (data.explored[t] !== data.greedy[t]) differ.push(t);
// The return so far, before the action of each step.
const sums = [0];
data.reward.forEach((r) => sums.push(sums[sums.length - 1] + r));

const config = { responsive: true, displayModeBar: false };
const names = Array.from({ length: actions }, (_, a) => String(options ? a + 1 : a));
const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(3);
const label = (a) => (options ? points.slice(a * dims, (a + 1) * dims).map(signed).join(" ") : String(a));
const brief = (a) => (dims > 4 ? label(a).split(" ").slice(0, 4).join(" ") + " …" : label(a));
const tint = (a, action) => css(a === action ? "--chosen" : options && a === data.greedy[now] ? "--actor" : "--accent");
function look() {
  const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line") };
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
    font: { color: css("--ink"), size: 12 }, margin: { l: 4, r: 8, t: 24, b: 28 },
  };
  return { axis, layout };
}
const short = (x) => (Number.isNaN(x) ? "–" : Number.isFinite(x) ? Number(x.toPrecision(3)).toString() : "∞");

function panels(layout, axis, titles, columns, room) {
  const rows = Math.ceil(titles.length / columns);
  layout.annotations = [];
  titles.forEach((title, i) => {
    const suffix = i ? String(i + 1) : "", column = i % columns, row = Math.floor(i / columns);
    const x = [(column + room) / columns, (column + 1) / columns];
    const y = [1 - (row + 1) / rows + (row + 1 < rows ? 0.28 / rows : 0), 1 - row / rows - (row ? 0.06 / rows : 0)];
    layout["xaxis" + suffix] = { ...axis, domain: x, anchor: "y" + suffix, fixedrange: true };
    layout["yaxis" + suffix] = { ...axis, domain: y, anchor: "x" + suffix, fixedrange: true };
    layout.annotations.push({ text: title, x: x[0], y: y[1], xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false });
  });
}

const SYMBOLS = { mu: "μ", sigma: "σ", rho2: "noise ρ²", regret: "regret Δ̂", info_gain: "gain I", ratio: "ratio Ψ" };

// Three ticks: Plotly's own on a short log axis are hard to read.
function logarithmic(axis, list) {
  const ratios = list.filter((r) => Number.isFinite(r) && r > 0);
  const ends = [Math.min(...ratios), Math.max(...ratios)];
  const ticks = [ends[0], Math.sqrt(ends[0] * ends[1]), ends[1]];
  Object.assign(axis, { type: "log", tickvals: ticks, ticktext: ticks.map(short) });
  if (ends[0] > 0 && ends[0] < ends[1]) {
    const [from, to] = ends.map(Math.log10);
    axis.range = [from - 0.25 * (to - from), to + 0.05 * (to - from)];
  }
}

function bars(rows, action) {
  const { axis, layout } = look();
  const narrow = innerWidth < 768;
  const drawn = data.shown.filter((name) => name !== "sigma"); // which is the bars around μ
  const spread = data.shown.includes("sigma");
  const titles = drawn.map((name) => ({ mu: spread ? "μ ± λσ" : "μ", ratio: "ratio Ψ (log)" })[name] || SYMBOLS[name]);
  panels(layout, axis, titles, narrow ? Math.min(2, titles.length) : titles.length, narrow ? 0.28 : Math.min(0.32, titles.length * 0.07));
  const finite = (list) => list.map((x) => (Number.isFinite(x) ? x : null));
  const colours = names.map((_, a) => tint(a, action));
  const along = dims === 1; // points along the action itself
  const marks = { color: colours, opacity: 1, line: { width: 0 }, size: along ? names.map((_, a) => (a === action || a === data.greedy[now] ? 10 : 4)) : 9 };
  const traces = drawn.map((name) => rows[name]).map((y, i) => ({
    type: along ? "scatter" : "bar", mode: "markers", x: along ? points : names, y: finite(y), marker: along ? marks : { color: colours },
    text: names.map((_, a) => label(a)), textposition: "none",
    xaxis: "x" + (i ? i + 1 : ""), yaxis: "y" + (i ? i + 1 : ""), hovertemplate: "action %{text}: %{y:.4g}<extra></extra>",
  }));
  Object.assign(traces[0], {
    type: "scatter", mode: "markers", marker: marks,
    error_y: !spread ? undefined : { type: "data", array: finite(rows.sigma.map((s) => data.lam * s)), color: css("--soft"), thickness: along ? 1 : 1.5, width: along ? 0 : 5 },
  });
  if (drawn.includes("ratio")) logarithmic(layout["yaxis" + (drawn.indexOf("ratio") + 1)], rows.ratio);
  if (!along) for (let i = 1; i <= drawn.length; i++) Object.assign(layout["xaxis" + (i > 1 ? i : "")], { type: "category", dtick: Math.ceil(actions / 9) });
  layout.margin.t = 22;
  return Plotly.react($("bars"), traces, layout, config);
}

function returns(roots, action) {
  const { axis, layout } = look();
  const bins = data.returns.roots.shape[1], { low, high } = data.returns;
  const x = Array.from({ length: bins }, (_, b) => low + ((b + 0.5) * (high - low)) / bins);
  const titles = options ? ["taken", "the actor's"] : names.map((a) => "action " + a);
  const columns = Math.min(titles.length, innerWidth < 768 ? 2 : 4);
  panels(layout, axis, titles, columns, 0.2);
  const top = (Math.max(...roots) / 255) ** 2 || 1;
  const traces = titles.map((title, a) => {
    const suffix = a ? String(a + 1) : "";
    layout["yaxis" + suffix].range = [0, top];
    return {
      type: "bar", x, y: Array.from(roots.subarray(a * bins, (a + 1) * bins), (r) => (r / 255) ** 2),
      xaxis: "x" + suffix, yaxis: "y" + suffix, marker: { color: options ? css(a ? "--actor" : "--chosen") : tint(a, action) },
      hovertemplate: "return %{x:.3g}: %{y:.3f}<extra>" + title + "</extra>",
    };
  });
  layout.bargap = 0;
  $("returns").style.height = 8 + 9 * Math.ceil(titles.length / columns) + "rem";
  return Plotly.react($("returns"), traces, layout, config);
}

function table(rows, action) {
  const cell = (text, kind = "") => Object.assign(document.createElement("td"), { textContent: text, className: kind });
  const cells = (a) => data.shown.map((n) => cell(short(rows[n][a]), "number"));
  const said = (a) => [a === action && "taken", a === data.explored[now] && data.rule, a === data.greedy[now] && data.other].filter(Boolean).join(", ");
  let listed = names.map((_, a) => a);
  if (dims === 1) { // of many along the action the best by ratio or mean, and whom somebody takes
    const worth = rows.ratio ? rows.ratio : rows.mu.map((x) => -x);
    const best = [...listed].sort((a, b) => worth[a] - worth[b]).slice(0, 8);
    listed = listed.filter((a) => best.includes(a) || said(a));
  }
  $("table").replaceChildren(...listed.map((a) => {
    const row = Object.assign(document.createElement("tr"), { className: a === action ? "taken" : "" });
    row.append(cell(label(a)), ...cells(a), cell(said(a)));
    return row;
  }));
}

function strokes(list) {
  const canvas = $("frame"), wide = canvas.clientWidth * (devicePixelRatio || 1);
  canvas.width = Math.round(wide);
  canvas.height = Math.round(wide / 1.5); // a picture is 1.5 wide and 1 high, y upwards
  const pen = canvas.getContext("2d"), unit = canvas.height;
  pen.lineCap = "round";
  data.view.pens.forEach(([colour, width], i) => {
    const [x0, y0, x1, y1] = list.slice(4 * i, 4 * i + 4);
    pen.strokeStyle = css("--" + colour);
    pen.lineWidth = width * unit;
    pen.beginPath();
    pen.moveTo(x0 * unit, (1 - y0) * unit);
    pen.lineTo(x1 * unit + (x0 === x1 && y0 === y1 ? 0.01 : 0), (1 - y1) * unit); // a canvas draws nothing of no length
    pen.stroke();
  });
}

function paint(frame) {
  const { kind } = data.view, [height, width] = data.view.frames.shape, canvas = $("frame");
  const scale = kind === "cells" ? Math.max(1, Math.floor(360 / Math.max(height, width))) : 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  if (kind !== "cells") {
    const image = pen.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = kind === "grey" ? frame[i] : frame[3 * i + c];
      image.data[4 * i + 3] = 255;
    }
    pen.putImageData(image, 0, 0);
    return;
  }
  for (let i = 0; i < width * height; i++) {
    pen.fillStyle = data.view.cells[frame[i]] || css("--card");
    pen.fillRect((i % width) * scale, Math.floor(i / width) * scale, scale, scale);
  }
  if (scale < 6) return;
  pen.strokeStyle = css("--line");
  pen.beginPath();
  for (let k = 0; k <= width; k++) { pen.moveTo(k * scale + 0.5, 0); pen.lineTo(k * scale + 0.5, canvas.height); }
  for (let k = 0; k <= height; k++) { pen.moveTo(0, k * scale + 0.5); pen.lineTo(canvas.width, k * scale + 0.5); }
  pen.stroke();
}

function numbers(list) {
  const { axis, layout } = look();
  layout.margin = { l: 40, r: 8, t: 8, b: 40 };
  layout.xaxis = { ...axis, title: { text: "number of the observation" }, fixedrange: true, dtick: list.length < 20 ? 1 : undefined };
  layout.yaxis = { ...axis, fixedrange: true, range: data.view.range.map((x, i) => x + (i ? 1 : -1) * 0.05 * (data.view.range[1] - data.view.range[0])) };
  const bar = { type: "bar", y: list, marker: { color: css("--soft") }, hovertemplate: "%{x}: %{y:.4g}<extra></extra>" };
  return Plotly.react($("numbers"), [bar], layout, config);
}

function marks() {
  const canvas = $("marks"), ratio = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = 14 * ratio;
  const pen = canvas.getContext("2d"), edge = 8 * ratio, wide = canvas.width - 2 * edge;
  const mark = (t, colour, y) => {
    pen.fillStyle = colour;
    pen.fillRect(edge + (wide * t) / Math.max(steps - 1, 1) - ratio, y * ratio, 2 * ratio, 6 * ratio);
  };
  pen.clearRect(0, 0, canvas.width, canvas.height);
  data.reward.forEach((r, t) => { if (r) mark(t, css("--accent"), 8); });
  differ.forEach((t) => mark(t, css("--chosen"), 1));
}

async function show(t) {
  t = Math.min(Math.max(t, 0), steps - 1);
  wanted = t;
  const [packed, frame, roots, compared] = await Promise.all([values.at(t), frames.at(t), histograms && histograms.at(t), options && options.at(t)]);
  if (wanted !== t) return; // overtaken while unpacking
  now = t;
  points = compared;
  const rows = {};
  data.names.forEach((name, i) => { rows[name] = packed.slice(i * actions, (i + 1) * actions); });
  if (data.shown.includes("ratio")) rows.ratio = rows.regret.map((r, a) => (r * r) / rows.info_gain[a]);
  const action = data.action[t];
  $("time").value = t;
  const split = data.explored[t] !== data.greedy[t] ? `; ${data.rule} would take ${brief(data.explored[t])}, ${data.other} ${brief(data.greedy[t])}` : "";
  $("now").textContent = `Step ${t} of ${steps - 1}: action ${brief(action)}, reward ${short(data.reward[t])}, return so far ${short(sums[t])}${split}`;
  $("time").setAttribute("aria-valuetext", `step ${t}`);
  ({ numbers, strokes }[data.view.kind] || paint)(frame);
  table(rows, action);
  bars(rows, action);
  if (histograms) returns(roots, action);
}

function pause() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "▶ Play";
  $("play").setAttribute("aria-label", "Play");
}
function play() {
  if (timer) return pause();
  if (now >= steps - 1) show(0);
  timer = setInterval(() => (now >= steps - 1 ? pause() : show(now + 1)), 1000 / Number($("speed").value));
  $("play").textContent = "⏸ Pause";
  $("play").setAttribute("aria-label", "Pause");
}
function jump(way) {
  const ahead = way > 0 ? differ.find((t) => t > now) : differ.filter((t) => t < now).pop();
  if (ahead !== undefined) { pause(); show(ahead); }
}
const go = (t) => { pause(); show(t); };

const acts = { first: () => go(0), back: () => go(now - 1), play, next: () => go(now + 1), last: () => go(steps - 1), before: () => jump(-1), after: () => jump(1) };
for (const [id, act] of Object.entries(acts)) $(id).addEventListener("click", act);
$("before").disabled = $("after").disabled = differ.length === 0;
$("time").max = steps - 1;
$("time").addEventListener("input", () => go(Number($("time").value)));
$("speed").addEventListener("change", () => { if (timer) { pause(); play(); } });
$("marks").addEventListener("click", (event) => {
  const t = ((event.offsetX - 8) / ($("marks").clientWidth - 16)) * (steps - 1);
  const near = differ.reduce((best, d) => (Math.abs(d - t) < Math.abs(best - t) ? d : best), Infinity);
  go(Math.abs(near - t) < steps * 0.03 ? near : Math.round(t));
});
const keys = { " ": play, ArrowLeft: acts.back, ArrowRight: acts.next, Home: acts.first, End: acts.last, n: acts.after, p: acts.before };
addEventListener("keydown", (event) => {
  const native = event.target.matches("select, button") && event.key === " " || event.target.matches("select, input") && event.key !== " " && event.key.length > 1;
  if (event.ctrlKey || event.metaKey || event.altKey || native || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

function sigma() {
  const { axis, layout } = look(), number = Number($("snapshot").value);
  const every = data.sigma.maps.flat(2).filter((x) => x !== null);
  layout.margin = { l: 34, r: 8, t: 8, b: 34 };
  layout.xaxis = { ...axis, title: { text: "column" }, fixedrange: true, constrain: "domain", showgrid: false, zeroline: false };
  layout.yaxis = { ...axis, title: { text: "row" }, autorange: "reversed", scaleanchor: "x", fixedrange: true, showgrid: false, zeroline: false };
  const map = {
    type: "heatmap", z: data.sigma.maps[number], zmin: 0, zmax: Math.max(...every), colorscale: "Viridis",
    colorbar: { title: { text: "σ" }, thickness: 12 }, hovertemplate: "row %{y}, column %{x}: σ %{z:.3g}<extra></extra>",
  };
  $("trained").textContent = data.sigma.steps[number].toLocaleString("en");
  return Plotly.react($("sigma"), [map], layout, config);
}
if (data.sigma) {
  $("sigma-card").hidden = false;
  $("snapshot").max = data.sigma.steps.length - 1;
  $("snapshot").addEventListener("input", sigma);
}
$("heads").replaceChildren(...["action", ...data.shown.map((name) => SYMBOLS[name]), ""].map((text, i) =>
  Object.assign(document.createElement("th"), { textContent: text, scope: "col", className: i && text ? "number" : "" })));
$("returns-card").hidden = !histograms;
$("actor-key").hidden = !options;
$("frame").classList.toggle("strokes", data.view.kind === "strokes");
$("frame").hidden = data.view.kind === "numbers";
$("numbers").hidden = !$("frame").hidden;

function everything() {
  marks();
  if (data.sigma) sigma();
  return show(now);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", everything);
addEventListener("resize", everything);
everything();
