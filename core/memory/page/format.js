"use strict";
// Texts, elements and charts.

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

// "10.0 MiB", as ebb's tables have it.
function bytesText(bytes) {
  let unit = 0, value = Math.abs(bytes);
  while (value >= 1023.95 && unit < units.length - 1) value /= 1024, ++unit;
  return (bytes < 0 ? "-" : "") + (unit ? value.toFixed(1) : value) + " " + units[unit];
}

function changeText(bytes) { return (bytes > 0 ? "+" : "") + bytesText(bytes); }

function percentText(part, all) { return (100 * part / (all || 1)).toFixed(1) + " %"; }

function exactText(bytes) { return bytes.toLocaleString("en-US") + " bytes"; }

// The last folder and the name of a file, and the line.
function lineText(tag) {
  return tag.file ? tag.file.split("/").slice(-2).join("/") + ":" + tag.line : "";
}

function tagText(tag) {
  return [tag.operator || "unnamed", tag.layer, lineText(tag)].filter(Boolean).join(" · ");
}

// element("p", {class: "note"}, "text", child): names are texts, never markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children);
  return made;
}

// Rows of texts. The first row is the heading; columns whose second row is a number are on the right.
function table(rows) {
  const isNumber = (rows[1] || []).map((cell, i) => i > 0 && typeof cell === "string" && /^([+-]?\d|–)/.test(cell));
  const line = (cells, kind) => element("tr", {}, ...cells.map((cell, i) => element(kind, {class: isNumber[i] && "number"}, cell)));
  return element("div", {class: "scrolls"}, element("table", {},
    element("thead", {}, line(rows[0], "th")),
    element("tbody", {}, ...rows.slice(1).map((row) => line(row, "td")))));
}

// A part of a legend: a swatch of a colour, or a line.
function legendEntry(kind, css, name) {
  return element("span", {}, element("i", {class: kind, style: css}), name);
}

function section(title, note, ...children) {
  return element("section", {}, element("h2", {}, title), note ? element("p", {class: "note"}, note) : "", ...children);
}

// One of a few names, the first to begin with. choose(name) is called for each other choice.
function choice(label, names, choose) {
  const option = (name, i) => element("label", {}, element("input",
    {type: "radio", name: label, checked: i === 0, onchange: () => choose(name)}), name);
  return element("form", {class: "choice"}, label + ": ", ...names.map(option));
}

// Of any number of values: Math.max takes some 100,000 arguments.
function largest(values) { return values.reduce((a, b) => Math.max(a, b), -Infinity); }

function style(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function categoryColours() { return categories.map((_, c) => style("--category-" + c)); }

// A colour for each key, as far from the others as can be.
function coloursOf(keys) {
  const all = [...new Set(keys)], light = style("--dark") === "1" ? 65 : 40;
  return new Map(all.map((key, i) => [key, `hsl(${360 * i / all.length} 60% ${light}%)`]));
}

// A chart of bytes, as wide as its holder. The first of series, axes and columns of data is x.
function bytesChart(holder, height, data, {series, axes, ...options}) {
  const size = () => ({width: Math.max(holder.clientWidth, 200), height});
  const axis = {stroke: style("--text"), grid: {stroke: style("--grid"), width: 1}};
  const powers = Array.from({length: 50}, (_, i) => 2 ** i);
  const bytesAxis = {size: 72, space: 22, incrs: powers, values: (_, at) => at.map(bytesText)};
  const line = {width: 1.5, points: {show: false}, paths: uPlot.paths.stepped({align: 1})};
  const plot = new uPlot({
    ...size(), ...options, series: series.map((each) => ({...line, ...each})),
    axes: axes.toSpliced(1, 0, bytesAxis).map((each) => ({...axis, ...each}))}, data, holder);
  new ResizeObserver(() => plot.setSize(size())).observe(holder);
  return plot;
}
