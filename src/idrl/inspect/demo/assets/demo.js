"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const config = { responsive: true, displayModeBar: false };

function look(margin) {
  const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), fixedrange: true };
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
    font: { color: css("--ink"), size: 12 }, margin,
  };
  return { axis, layout };
}

function curve() {
  const { axis, layout } = look({ l: 48, r: 8, t: 8, b: 40 });
  const { steps, mean, low, high } = data.evaluated;
  layout.xaxis = { ...axis, title: { text: "steps of each seed" } };
  layout.yaxis = { ...axis, title: { text: "return of an episode" } };
  const shade = { x: [...steps, ...[...steps].reverse()], y: [...high, ...[...low].reverse()] };
  return Plotly.react($("curve"), [
    { ...shade, fill: "toself", fillcolor: data.colour, opacity: 0.2, line: { width: 0 }, hoverinfo: "skip" },
    { x: data.acting.steps, y: data.acting.mean, mode: "markers", name: "acting", marker: { color: css("--soft"), size: 5 } },
    { x: steps, y: mean, name: "evaluated", mode: "lines", line: { color: data.colour, width: 2 } },
  ], layout, config);
}

function maps() {
  const top = Math.max(...data.sigma.maps.flat(2).filter((x) => x !== null));
  const places = data.sigma.steps.map((_, i) => $("maps").children[i] || $("maps").appendChild(document.createElement("div")));
  return Promise.all(places.map((place, i) => {
    const { layout } = look({ l: 2, r: 2, t: 26, b: 2 }), steps = data.sigma.steps[i].toLocaleString("en");
    const title = i ? `after ${steps} steps` : "before learning";
    Object.assign(place, { role: "img", ariaLabel: `σ at every place, ${title}` });
    layout.title = { text: title, font: { size: 12 }, x: 0.02, y: 0.97 };
    layout.xaxis = { visible: false, fixedrange: true, constrain: "domain" };
    layout.yaxis = { visible: false, fixedrange: true, autorange: "reversed", scaleanchor: "x" };
    const map = {
      type: "heatmap", z: data.sigma.maps[i], zmin: 0, zmax: top, colorscale: "Viridis", showscale: false,
      hovertemplate: "row %{y}, column %{x}: σ %{z:.3g}<extra></extra>",
    };
    return Plotly.react(place, [map], layout, config);
  }));
}

const everything = () => Promise.all([curve(), maps()]);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", everything);
everything();
