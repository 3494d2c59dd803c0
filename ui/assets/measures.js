/* The Calibrate board: key figures, figures by sub-dimension, confusion matrices, disagreements.
 * Data comes ready to be shown (annotations/calibration.py); uses annotate_dom.js. Text goes in as text. */

const PLOT = 156;
const INSET = 13;

function capital(text) { return text.charAt(0).toUpperCase() + text.slice(1); }

function placed(share) { return INSET + share * (PLOT - 2 * INSET); }

function keyFigures(figures) {
  const parts = figures.map((figure) => make("div", { title: figure.title || null },
    make("b", { text: figure.value }), figure.of ? make("span", { class: "of", text: ` ${figure.of}` }) : null,
    make("span", { class: "what", text: figure.label })));
  return make("section", { class: "card sum", "aria-label": "Key figures" }, ...parts);
}

function grid(ticks, height) {
  return ticks.map((tick) => vector("path", { class: "gr", d: `M${placed(tick.at)} 0v${height}` }));
}

function scaleHead(ticks) {
  const frame = vector("svg", { width: PLOT, height: 15, viewBox: `0 0 ${PLOT} 15`, "aria-hidden": "true" });
  for (const tick of ticks) {
    const text = vector("text", { class: "cap", x: placed(tick.at), y: 11, "text-anchor": "middle" });
    text.textContent = tick.text;
    frame.append(text);
  }
  return frame;
}

function dotAndInterval(row, ticks) {
  const frame = vector("svg", { width: PLOT, height: 26, viewBox: `0 0 ${PLOT} 26`, role: "img", "aria-label": `${row.spans}; ${row.top_text || ""}` });
  frame.append(...grid(ticks, 26));
  if (row.top_low !== null && row.top_low !== undefined) {
    const from = placed(row.top_low);
    frame.append(vector("rect", { class: "band", x: from, y: 5, width: Math.max(1, placed(row.top_high) - from), height: 16 }));
  }
  if (row.top !== null && row.top !== undefined) frame.append(vector("path", { class: "top", d: `M${placed(row.top)} 4v18` }));
  if (row.low !== null && row.high !== null) {
    const [from, to] = [placed(row.low), placed(row.high)];
    frame.append(vector("path", { class: "ci", d: `M${from} 13H${to}M${from} 9v8M${to} 9v8` }));
  }
  if (row.at !== null) frame.append(vector("circle", { class: "pt", cx: placed(row.at), cy: 13, r: row.overall ? 5.5 : 4.5 }));
  return frame;
}

function biasBar(row) {
  const frame = vector("svg", { width: 44, height: 12, viewBox: "0 0 44 12", "aria-hidden": "true" });
  const wide = Math.abs(row.bar) * 20;
  frame.append(vector("path", { class: "gr", d: "M22 0v12" }));
  if (wide) frame.append(vector("rect", { class: row.bar > 0 ? "up" : "dn", x: row.bar > 0 ? 22 : 22 - wide, y: 3, width: wide, height: 6 }));
  return frame;
}

function figureRow(row, data, pick) {
  const chosen = data.pick.dimension === row.id;
  const number = (text, cls) => make("td", { class: `r ${cls || ""}`, text });
  const name = row.overall
    ? make("span", { text: row.name })
    : make("button", { type: "button", class: "name", text: row.name, title: `${row.full}: list its disagreements`, "aria-pressed": String(chosen), onclick: () => pick(chosen ? {} : { dimension: row.id }) });
  const last = ["S4", "D5"].includes(row.id) || row.id === "E4" ? "end" : "";
  return make("tr", { class: `${row.overall ? "tot" : ""} ${last} ${chosen ? "cur" : ""}`, title: `${row.spans}; ${row.top_text || ""}` },
    make("td", { class: "b", text: row.id }), make("td", {}, name),
    make("td", { class: "p" }, dotAndInterval(row, data.ticks)),
    make("td", { class: "r" }, make("b", { text: row.ema })), number(row.mae), number(row.human), number(row.judge),
    make("td", { class: "sg" }, biasBar(row), make("span", { text: row.bias })),
    make("td", { class: `r ${row.kappa === "–" ? "q" : ""}`, title: row.note || null, text: row.kappa }),
    make("td", { class: `r ${row.thin ? "thin" : ""}`, title: row.coverage }, row.thin ? "▲ " : null, row.both, make("span", { class: "q", text: ` ${row.of}` })));
}

function figureTable(data, pick) {
  const [left, right] = data.sides;
  const heads = [["EMA", "Exact match accuracy: share of equal scores"], ["MAE", "Mean absolute error, in rubric points"],
    [capital(left), `Mean score of ${left}`], [capital(right), `Mean score of ${right}`], ["Bias", `Mean of ${right} minus mean of ${left}`],
    ["Kappa", "Linearly weighted kappa; a dash is undefined, point at it for the reason"], ["By both", "Cells that both scored, of those that people scored"]];
  const table = make("table", { class: "ag" },
    make("thead", {}, make("tr", {}, make("th", { "aria-label": "Sub-dimension" }), make("th", { "aria-label": "Name" }), make("th", { class: "p", "aria-label": "EMA, drawn" }, scaleHead(data.ticks)),
      ...heads.map(([text, title]) => make("th", { class: "r", text, title })))),
    make("tbody", {}, ...data.rows.map((row) => figureRow(row, data, pick))));
  const mark = vector("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" });
  mark.append(vector("path", { class: "ci", d: "M2 6h22M2 2v8M24 2v8" }), vector("circle", { class: "pt", cx: 13, cy: 6, r: 4.5 }));
  const ceil = vector("svg", { width: 22, height: 14, viewBox: "0 0 22 14", "aria-hidden": "true" });
  ceil.append(vector("rect", { class: "band", x: 1, y: 1, width: 20, height: 12 }), vector("path", { class: "top", d: "M11 0v14" }));
  const legend = make("span", { class: "lk" }, mark, `${right} with ${left}, ${data.level} interval`, ceil, "people with people, the ceiling");
  const head = make("div", { class: "head" }, make("h2", { text: "Agreement by sub-dimension" }), make("span", { class: "gap" }), legend);
  return make("section", { class: "card wide" }, head, make("div", { class: "scroll" }, table));
}

/* Between 52 and 82 neither dark nor light digits have a contrast of 4.5 on the colour. */
function shade(share) {
  return share > 52 ? 82 + ((share - 52) * 18) / 48 : Math.max(share, 4);
}

function matrix(one, data, pick) {
  const cell = (at) => {
    const chosen = data.pick.dimension === one.id && data.pick.human === at.at[0] && data.pick.judge === at.at[1];
    const share = Math.round(100 * at.share);
    const label = `${one.id}, people ${at.at[0] / 2}, judge ${at.at[1] / 2}: ${at.n}`;
    const look = { class: `${at.same ? "d" : "o"} ${chosen ? "on" : ""} ${share > 52 ? "w" : ""}`, style: `--p:${at.n ? shade(share) : 0}%`, title: label };
    if (at.same || !at.n) return make("span", { ...look, text: String(at.n) });
    const narrow = { dimension: one.id, human: at.at[0], judge: at.at[1] };
    return make("button", { ...look, type: "button", "aria-label": `${label}; list them`, "aria-pressed": String(chosen), text: String(at.n), onclick: () => pick(chosen ? {} : narrow) });
  };
  const cells = one.rows.flatMap((row, place) => [make("i", { text: ["1", ".5", "0"][place] }), ...row.map(cell)]);
  return make("div", { class: `cm ${one.n ? "" : "none"}`, role: "group", "aria-label": `Confusion of ${one.id} ${one.name}` },
    make("b", { text: one.id, title: one.name }), ...cells, make("i"), ...["0", ".5", "1"].map((text) => make("i", { text })));
}

function matrices(data, pick) {
  const sizes = new Set(data.matrices.filter((one) => one.n).map((one) => one.n));
  const size = sizes.size === 1 ? `, n = ${[...sizes][0].toLocaleString("en")} each` : "";
  const legend = "Blue: agree. Orange: differ, darker where a larger share of the row does. Select a cell to list its items below.";
  const head = make("div", { class: "head" }, make("h2", { text: "Confusion" }), make("span", { class: "gap" }), make("span", { class: "q s12", text: `rows ${data.sides[0]}, columns ${data.sides[1]}${size}` }));
  return make("section", { class: "card cms" }, head, make("div", { class: "grid" }, ...data.matrices.map((one) => matrix(one, data, pick)), make("p", { class: "q s12", text: legend })));
}

function listRow(row, open) {
  const item = make("td", { class: "mono", title: row.full, text: row.item });
  const go = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    open(row);
  };
  const link = row.link ? make("a", { href: row.link, text: "Open", "aria-label": `Open ${row.item}`, onclick: go }) : null;
  const noted = row.note ? make("span", { class: "q", text: ` · people: ${row.note}` }) : null;
  const why = make("td", { class: "rs", title: [row.reason, row.note && `people: ${row.note}`].filter(Boolean).join("\n") || null },
    row.reason || make("span", { class: "q", text: "no reason given" }), noted);
  return make("tr", { tabindex: -1, ondblclick: () => row.link && open(row) }, item,
    make("td", {}, make("b", { text: row.dimension }), ` ${row.short}`),
    make("td", { class: "c", text: row.human }), make("td", { class: "c" }, make("b", { text: row.judge })), make("td", { class: "c", text: row.gap }),
    make("td", { class: "pe q", text: row.people, title: row.people }), why, make("td", { class: "r" }, link));
}

function disagreements(data, pick, turn, open) {
  const list = data.list;
  const body = make("tbody", {}, ...list.rows.map((row) => listRow(row, open)));
  const move = (event) => {
    const rows = [...body.children];
    const at = rows.indexOf(event.target.closest("tr"));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && rows[at + step]) { event.preventDefault(); rows[at + step].focus(); }
    if (event.key === "Enter" && event.target.tagName === "TR" && list.rows[at].link) open(list.rows[at]);
  };
  body.addEventListener("keydown", move);
  if (body.firstElementChild) body.firstElementChild.tabIndex = 0;
  const shown = `${list.total} ${list.noun}, largest first`;
  const head = make("div", { class: "head" }, make("h2", { text: "Disagreements" }), make("span", { class: "q s12", text: shown }),
    list.title ? make("button", { type: "button", class: "btn", onclick: () => pick({}), "aria-label": `Only ${list.title}: list all again` }, `only ${list.title} ×`) : null,
    list.blind ? make("span", { class: "q s12", text: `${list.blind} more are of items that you have still to submit or reveal on Annotate` }) : null,
    make("span", { class: "gap" }), pager(list, turn),
    list.rows.some((row) => row.link) ? make("span", { class: "q s12 keys" }, key("↑"), " ", key("↓"), " move  ", key("↵"), " open") : null);
  if (!list.rows.length) return make("section", { class: "card" }, head, make("p", { class: "q pad", text: "None." }));
  const heads = [["Item"], ["Sub-dimension"], [capital(data.sides[0]), "c"], [capital(data.sides[1]), "c"], ["Gap", "c"], ["Who"], [`Reason of ${data.sides[1]}`], [""]];
  const top = make("thead", {}, make("tr", {}, ...heads.map(([text, cls]) => make("th", { text, class: cls || null, "aria-label": text ? null : "Link" }))));
  return make("section", { class: "card" }, head, make("div", { class: "scroll" }, make("table", { class: "ls" }, top, body)));
}

function pager(list, turn) {
  if (list.pages < 2) return null;
  const step = (by, label) => make("button", { type: "button", class: "btn", text: label, disabled: list.page + by < 1 || list.page + by > list.pages, onclick: () => turn(list.page + by) });
  return make("span", { class: "pager" }, step(-1, "Previous"), make("span", { class: "q s12", text: `page ${list.page} of ${list.pages}` }), step(1, "Next"));
}

export default function measures({ data, parentElement, setStateValue, setTriggerValue }) {
  const pick = (narrow) => setStateValue("pick", { dimension: "", human: null, judge: null, ...narrow });
  const turn = (page) => setStateValue("page", page);
  const open = (row) => setTriggerValue("open", { sample: row.sample, dimension: row.dimension });
  const root = make("div", { class: "board" }, keyFigures(data.key),
    make("div", { class: "two" }, figureTable(data, pick), matrices(data, pick)), disagreements(data, pick, turn, open));
  const old = parentElement.querySelector(".board");
  if (old) old.replaceWith(root);
  else parentElement.append(root);
  return () => root.remove();
}
