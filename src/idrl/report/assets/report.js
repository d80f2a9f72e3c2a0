"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const hidden = new Set();
const drawn = new Set();
let width = 1;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const faint = (hex, alpha) => {
  const n = parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
};

// Plotly takes names for HTML of its own kind.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// A centred moving average; gaps stay gaps.
function smoothed(values) {
  if (width === 1) return values;
  const half = (width - 1) / 2;
  return values.map((value, i) => {
    if (value === null) return null;
    const near = values.slice(Math.max(0, i - half), i + half + 1).filter((v) => v !== null);
    return near.reduce((a, b) => a + b, 0) / near.length;
  });
}

function traces(chart) {
  const made = [];
  for (const line of chart.lines) {
    if (hidden.has(line.label)) continue;
    const look = line.colour ? line : data.looks[line.label];
    const bend = (values) => (chart.smooth ? smoothed(values) : values);
    for (const [low, high, alpha] of line.bands || []) {
      const edge = { x: line.x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
      made.push({ ...edge, y: bend(low) });
      made.push({ ...edge, y: bend(high), fill: "tonexty", fillcolor: faint(look.colour, alpha) });
    }
    made.push({
      x: line.x, y: bend(line.y), mode: "lines", name: plain(line.name || line.label),
      line: { color: look.colour, dash: line.dash || look.dash, width: line.dash ? 1.2 : 2 },
      hovertemplate: "%{y:.4g}",
    });
  }
  return made;
}

function draw(id) {
  const chart = data.charts[id];
  const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
  const layout = {
    margin: { l: 46, r: 8, t: 6, b: 36 }, showlegend: false, hovermode: "x unified",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: css("--ink"), size: 12 },
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
    xaxis: { ...axis, title: { text: chart.x, standoff: 4 } },
    yaxis: { ...axis, exponentformat: "power", minexponent: 5, title: { text: chart.y, standoff: 4 } },
  };
  const config = { responsive: true, displaylogo: false, displayModeBar: false };
  return Plotly.react(document.getElementById(id), traces(chart), layout, config);
}
const redraw = () => drawn.forEach(draw);

// Charts are drawn when they come on the screen, one at a time: a page of 55 games answers at once.
const waiting = [];
function drawNext() {
  const id = waiting.shift();
  if (id === undefined) return;
  drawn.add(id);
  draw(id).then(() => setTimeout(drawNext));
}
const watcher = new IntersectionObserver((entries) => {
  const idle = waiting.length === 0;
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watcher.unobserve(entry.target);
    waiting.push(entry.target.id);
  }
  if (idle && waiting.length) setTimeout(drawNext);
});
document.querySelectorAll(".plot").forEach((plot) => watcher.observe(plot));

document.querySelectorAll(".agent").forEach((button) =>
  button.addEventListener("click", () => {
    const label = button.dataset.label;
    if (!hidden.delete(label)) hidden.add(label);
    button.setAttribute("aria-pressed", String(!hidden.has(label)));
    redraw();
  }));

const smoothing = document.getElementById("smoothing");
smoothing.addEventListener("input", () => {
  width = 2 * Number(smoothing.value) + 1;
  document.getElementById("width").textContent = width === 1 ? "none" : `${width} points`;
  redraw();
});

function sort(table, column, up) {
  const body = table.tBodies[0];
  const key = (row) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    // Numbers before words (a dash for a missing one), whichever way.
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    const way = typeof x === "number" ? x - y : x.localeCompare(y, undefined, { numeric: true });
    return up ? way : -way;
  };
  body.append(...[...body.rows].sort(order));
}
document.querySelectorAll("table.sortable").forEach((table) =>
  [...table.tHead.rows[0].cells].forEach((head, column) =>
    head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach((th) => th.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(table, column, up);
    })));

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
