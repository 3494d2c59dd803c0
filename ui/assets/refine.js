/* The Refine board: versions on dev, what an edit changed, cells that moved, the sealed side.
 * Data comes ready to be shown (annotations/refine_board.py); uses annotate_dom.js. Text goes in as text. */

const PLOT = 132;
const INSET = 14;

function placed(share) { return INSET + share * (PLOT - 2 * INSET); }

function axisHead(data) {
  const frame = vector("svg", { width: PLOT, height: 15, viewBox: `0 0 ${PLOT} 15`, "aria-hidden": "true" });
  let last = -99;
  for (const tick of data.ticks) {
    if (placed(tick.at) - last < 28) continue;
    last = placed(tick.at);
    const text = vector("text", { class: "cap", x: placed(tick.at), y: 11, "text-anchor": "middle" });
    text.textContent = tick.text;
    frame.append(text);
  }
  return frame;
}

function point(row, data) {
  const frame = vector("svg", { width: PLOT, height: 30, viewBox: `0 0 ${PLOT} 30`, role: "img", "aria-label": row.words });
  for (const tick of data.ticks) frame.append(vector("path", { class: "gr", d: `M${placed(tick.at)} 0v30` }));
  if (data.ceiling.at !== null) frame.append(vector("path", { class: "top", d: `M${placed(data.ceiling.at)} 0v30` }));
  if (row.low !== null && row.high !== null) {
    frame.append(vector("path", { class: "ci", d: `M${placed(row.low)} 15H${placed(row.high)}M${placed(row.low)} 11v8M${placed(row.high)} 11v8` }));
  }
  if (row.at !== null) frame.append(vector("circle", { class: "pt", cx: placed(row.at), cy: 15, r: 4.5 }));
  return frame;
}

function hatch(frame, id) {
  const pattern = vector("pattern", { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(vector("rect", { width: 5, height: 5, class: "hb" }), vector("path", { class: "hl", d: "M0 0v5" }));
  const defs = vector("defs", {});
  defs.append(pattern);
  frame.append(defs);
}

function moveBar(row) {
  if (!row.same) return make("span", { class: "q", text: "no parent" });
  const frame = vector("svg", { width: 190, height: 22, viewBox: "0 0 190 22", role: "img", "aria-label": `${row.broken} broken, ${row.fixed} fixed` });
  hatch(frame, "hatch");
  const left = row.broken_bar * 52;
  const right = row.fixed_bar * 52;
  if (left) frame.append(vector("rect", { class: "bk", x: 95 - left, y: 5, width: left, height: 12 }));
  if (right) frame.append(vector("rect", { class: "fx", x: 95, y: 5, width: right, height: 12 }));
  frame.append(vector("path", { class: "mid", d: "M95 1v20" }));
  const number = (text, x, anchor) => {
    const made = vector("text", { class: "num", x, y: 15, "text-anchor": anchor });
    made.textContent = text;
    frame.append(made);
  };
  number(row.broken, 90 - left, "end");
  number(row.fixed, 100 + right, "start");
  return frame;
}

const SIGNS = { up: "▲ ", down: "▼ ", flat: "= " };

function versionRow(row, data, say) {
  const verdict = row.verdict === "start" ? make("span", { class: "q", text: "start" })
    : make("span", { class: `vd ${row.tone}`, text: `${SIGNS[row.tone]}${row.verdict.split(":")[0]}`, title: row.detail || row.verdict });
  const name = make("button", { type: "button", class: "name", text: row.label, "aria-pressed": String(row.current), title: row.scorer, onclick: () => say("version", row.scorer) });
  return make("tr", { class: row.current ? "cur" : "" }, make("td", {}, name), make("td", { class: "q cut", text: row.by, title: row.by }),
    make("td", { class: "note", text: row.note, title: row.note }), make("td", { class: "p", title: row.words }, point(row, data)),
    make("td", { class: "r" }, make("b", { text: row.ema })), make("td", { class: "r", text: row.diff, title: row.detail || null }), make("td", { class: "r", text: row.mae }),
    make("td", { class: "c" }, moveBar(row)), make("td", { class: "r q", text: row.same }), make("td", { class: "q nw", text: row.p, title: row.detail || null }), make("td", { class: "nw" }, verdict));
}

function versions(data, say) {
  const heads = [["Version"], ["By"], ["Change"], [null, "p"], ["EMA", "r"], ["Diff.", "r"], ["MAE", "r"], ["Broken, fixed against parent", "c"], ["Unchanged", "r"], ["Paired test"], ["Verdict"]];
  const top = make("tr", {}, ...heads.map(([text, cls]) => make("th", { class: cls || null, "aria-label": text === null ? "EMA, drawn" : null }, text === null ? axisHead(data) : text)));
  const head = make("div", { class: "head" }, make("h2", { text: "Prompt versions on dev" }), make("span", { class: "gap" }),
    make("span", { class: "q s12", text: `dot and line: EMA, 95%; thick line: ${data.ceiling.text}` }));
  return make("section", { class: "card" }, head, make("div", { class: "scroll" }, make("table", { class: "vs" }, make("thead", {}, top), make("tbody", {}, ...data.rows.map((row) => versionRow(row, data, say))))));
}

function diffLine(line) {
  const sign = { added: "+", removed: "−", same: "" }[line.kind];
  const tag = { added: "ins", removed: "del", same: "span" }[line.kind];
  const parts = line.parts.map(([text, marked]) => (marked ? make(tag, { text }) : make("span", { text })));
  return make("div", { class: `ln ${line.kind}` }, make("span", { class: "no", text: String(line.before) }), make("span", { class: "no", text: String(line.after) }),
    make("span", { class: "sg", text: sign, "aria-label": line.kind === "same" ? null : line.kind }), make("span", { class: "tx" }, ...parts));
}

function change(data, say) {
  const one = data.chosen;
  const flag = one.repeats.length ? make("span", { class: "vd down", title: one.repeats.join("\n"), text: `repeats ${one.repeats.length} run${one.repeats.length > 1 ? "s" : ""} of words of dev samples` })
    : make("span", { class: "vd flat", text: "✓ repeats no dev sample" });
  const fold = one.can_fold ? make("button", { type: "button", class: "btn", text: one.whole ? "Changes only" : "Whole prompt", onclick: () => say("whole", !one.whole) }) : null;
  const edits = one.edit.map((name) => make("button", { type: "button", class: "btn main", text: `Edit ${name}`, onclick: () => say("edit", name) }));
  const head = make("div", { class: "head" }, make("h2", { text: one.title }), make("span", { class: "q s12", text: one.words }), make("span", { class: "gap" }), flag, fold, ...edits);
  const body = make("div", { class: "diff", tabindex: "0", role: "region", "aria-label": "Text of the prompt" }, ...one.lines.map(diffLine));
  return make("section", { class: "card col" }, head, body, data.moved.length ? movedChart(data.moved, data.cells, say) : null);
}

function movedChart(moved, list, say) {
  const wide = 58;
  const frame = vector("svg", { viewBox: `0 0 ${wide * moved.length} 116`, class: "mv", role: "group", "aria-label": moved.map((m) => `${m.id}: ${m.fixed} fixed, ${m.broken} broken`).join("; ") });
  hatch(frame, "hatch2");
  moved.forEach((one, place) => {
    const x = place * wide + 14;
    const up = one.up * 44;
    const down = one.down * 30;
    const on = list.dimension === one.id;
    const pick = () => say("cells", { move: list.move, dimension: on ? "" : one.id, page: 1 });
    const group = vector("g", { class: on ? "pickd on" : "pickd", tabindex: "0", role: "button", "aria-pressed": String(on), "aria-label": `Cells of ${one.id}` });
    group.addEventListener("click", pick);
    group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(); } });
    group.append(vector("rect", { class: "hit", x: x - 14, y: 0, width: wide, height: 116 }));
    const title = vector("title", {});
    title.textContent = `${one.id}, ${one.p}`;
    group.append(title, vector("rect", { class: "fx", x, y: 60 - up, width: 22, height: up }), vector("rect", { class: "bk2", x, y: 60, width: 22, height: down }));
    const text = (value, y, cls) => {
      const made = vector("text", { class: cls, x: x + 26, y });
      made.textContent = value;
      group.append(made);
    };
    text(one.fixed, 57, "num");
    text(one.broken, 72, "cap");
    const label = vector("text", { class: "cap", x: x + 11, y: 110, "text-anchor": "middle" });
    label.textContent = one.id;
    group.append(label);
    frame.append(group);
  });
  frame.append(vector("path", { class: "mid", d: `M0 60H${wide * moved.length}` }));
  return make("div", { class: "where" }, make("p", {}, make("b", { text: "Where it moved" }), make("span", { class: "q s12", text: " cells fixed above the line, broken below; select one to list its cells" })), frame);
}

function sealed(data, say) {
  const one = data.sealed;
  const dots = Array.from({ length: Math.min(one.looks, 12) }, () => make("i", { class: "eye" }));
  const looks = one.looks === 0 ? "never opened" : `${one.looks} look${one.looks > 1 ? "s" : ""}`;
  const lines = one.lines.map((line) => make("div", { class: "lk2" }, make("b", { text: line.what }), make("span", { text: ` ${line.text}` }), make("span", { class: "q s12 blk", text: line.when })));
  const button = one.label && one.judged ? make("button", { type: "button", class: "btn", text: `Open for ${one.label}, counts as look ${one.next}`, onclick: () => say("look", one.label) }) : null;
  const run = one.label && !one.whole ? make("button", { type: "button", class: "btn", text: `Let ${one.label} judge held-out, shows nothing`, onclick: () => say("held", one.label) }) : null;
  const not = one.label ? make("div", { class: "q", text: `${one.label}: ${one.ready}, ${one.opened ? "opened" : "not opened"}` }) : null;
  return make("section", { class: "card seal" }, make("div", { class: "stripe" }), make("div", { class: "in" }, make("h2", { text: "Held-out, sealed" }),
    make("div", {}, ...dots, make("b", { text: looks })), make("div", { class: "q s12", text: one.size }),
    make("div", { class: "q s12", text: "Sealed on every page: judges' scores of these items. Not sealed: people's scores, exports, and what a batch reveals to who has scored an item." }), ...lines, not, run, button));
}

const MARKS = { fixed: "✓ ", broken: "✕ ", same: "= " };

function cells(data, say) {
  const list = data.cells;
  const go = (change) => say("cells", { move: list.move, dimension: list.dimension, page: 1, ...change });
  const kinds = list.kinds.map((kind) => make("button", { type: "button", class: kind.on ? "btn on" : "btn", text: kind.text, "aria-pressed": String(kind.on), onclick: () => go({ move: kind.on ? "" : kind.move }) }));
  const only = list.dimension ? make("button", { type: "button", class: "btn on", text: `${list.dimension} ✕`, "aria-label": `All sub-dimensions, not ${list.dimension} alone`, onclick: () => go({ dimension: "" }) }) : null;
  const head = make("div", { class: "head" }, make("h2", { text: "Cells", title: list.title || null }), make("span", { class: "gap" }), only, ...kinds);
  const kept = list.hidden ? make("p", { class: "q pad s12", text: `${list.hidden} kept back: you still score these items blind.` }) : null;
  if (!list.rows.length) return make("section", { class: "card" }, head, make("p", { class: "q pad", text: list.title ? "No such cell." : "The first version has no parent to compare with." }), kept);
  const turn = (text, page) => make("button", { type: "button", class: "btn", text, disabled: page < 1 || page > list.pages, onclick: () => go({ page }) });
  const pager = list.pages > 1 ? make("div", { class: "foot" }, turn("Previous", list.page - 1), make("span", { class: "q s12", text: `page ${list.page} of ${list.pages}` }), turn("Next", list.page + 1)) : null;
  const open = (row, event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    say("open", row.sample);
  };
  const rows = list.rows.map((row) => make("tr", {}, make("td", { class: "mono" }, make("a", { href: row.link, text: row.item, onclick: (event) => open(row, event) })), make("td", {}, make("b", { text: row.dimension })),
    make("td", { class: "c", text: row.human }), make("td", { class: "c", text: row.before }), make("td", { class: "c" }, make("b", { text: row.after })), make("td", { class: `mv-${row.move}`, text: MARKS[row.move] + (row.move !== "same" ? row.move : row.right ? "right" : "still apart") })));
  const top = make("tr", {}, ...[["Item"], [""], ["People", "c"], ["Before", "c"], ["After", "c"], [""]].map(([text, cls], at) => make("th", { text, class: cls || null, "aria-label": text ? null : at === 1 ? "Sub-dimension" : "Move" })));
  return make("section", { class: "card" }, head, make("div", { class: "tall" }, make("table", { class: "cl" }, make("thead", {}, top), make("tbody", {}, ...rows))), pager, kept);
}

export default function refine({ data, parentElement, setStateValue, setTriggerValue }) {
  const say = (name, value) => (["version", "whole", "cells"].includes(name) ? setStateValue(name, value) : setTriggerValue(name, value));
  const root = make("div", { class: "board" }, versions(data, say),
    data.chosen ? make("div", { class: "two" }, change(data, say), make("div", { class: "col" }, sealed(data, say), cells(data, say))) : null);
  const old = parentElement.querySelector(".board");
  if (old) old.replaceWith(root);
  else parentElement.append(root);
  return () => root.remove();
}
