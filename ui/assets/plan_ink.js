/* Shapes, badges, words and colours of a plan's drawing; plan.js puts them on a canvas. */

const PLAN = {
  least: 0.875, // 12 px on the canvas stay 10.5 px on the screen
  most: 1.15,
  gap: 26,
  gapLeast: 14,
  gapMost: 48,
  widthLeast: 84,
  rowsLeast: 0.86,
  margin: 8,
  top: 30,
  colours: ["page", "surf", "sunk", "ink", "mute", "line", "edge", "acc", "acct", "add", "addt",
    "chg", "chgt", "fail", "failt", "rem", "done"],
};

/* ---- fit: where columns and rows stand in a canvas of a given size -------------------------- */

function planFit(picture, width, height) {
  const columns = picture.columns;
  const between = Math.max(columns.length - 1, 0);
  const boxes = columns.reduce((sum, column) => sum + column.w, 0);
  const small = columns.reduce((sum, c) => sum + Math.min(c.w, PLAN.widthLeast), 0);
  const frame = 2 * PLAN.margin;
  let scale = 1;
  let gap = PLAN.gap;
  let squeeze = 0; // 0 full node width, 1 smallest
  const full = boxes + between * gap + frame;
  if (width >= full) {
    scale = Math.min(PLAN.most, width / full);
    const spare = between ? (width / scale - boxes - frame) / between : gap;
    gap = Math.min(PLAN.gapMost, Math.max(gap, spare));
  } else {
    gap = Math.max(PLAN.gapLeast, between ? (width - boxes - frame) / between : gap);
    const tight = boxes + between * gap + frame;
    if (tight > width) scale = Math.max(PLAN.least, width / tight);
    const room = width / scale - between * gap - frame;
    if (room < small) squeeze = 0; // it must be moved about anyway: full labels
    else if (room < boxes) squeeze = (boxes - room) / Math.max(boxes - small, 1);
  }
  let rows = 1;
  if (height && picture.height * scale > height) {
    rows = Math.max(PLAN.rowsLeast, (height / scale - PLAN.top) / (picture.height - PLAN.top));
    const tall = PLAN.top + (picture.height - PLAN.top) * rows;
    if (tall * scale > height) scale = Math.max(Math.min(scale, PLAN.least), height / tall);
  }
  const placed = [];
  let left = PLAN.margin;
  for (const column of columns) {
    const w = column.w - squeeze * Math.max(0, column.w - PLAN.widthLeast);
    placed.push({ x: left + w / 2, w });
    left += w + gap;
  }
  const drawnWidth = left - gap + PLAN.margin;
  const drawnHeight = PLAN.top + (picture.height - PLAN.top) * rows;
  return {
    scale,
    rows,
    columns: placed,
    width: drawnWidth,
    height: drawnHeight,
    y: (value) => PLAN.top + (value - PLAN.top) * rows,
    whole: drawnWidth * scale <= width + 1 && drawnHeight * scale <= height + 1,
  };
}

/* ---- ink ------------------------------------------------------------------------------------ */

function planColours(probe) {
  const found = {};
  for (const name of PLAN.colours) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  found.sans = getComputedStyle(probe).fontFamily || "sans-serif";
  return found;
}

function planLook(state, ink) {
  const looks = {
    pending: { fill: ink.surf, line: ink.edge, width: 1.25 },
    done: { fill: ink.done, line: ink.edge, width: 1.25 },
    new: { fill: ink.acct, line: ink.acc, width: 2 },
    failed: { fill: ink.failt, line: ink.fail, width: 2.25 },
    added: { fill: ink.addt, line: ink.add, width: 2.5 },
    changed: { fill: ink.chgt, line: ink.chg, width: 2, dash: [7, 2.5, 1.5, 2.5] },
    removed: { fill: ink.surf, line: ink.rem, width: 1.5, dash: [3, 3], text: ink.rem },
    ghost: { fill: null, line: ink.rem, width: 1, dash: [2, 3], text: ink.rem },
    missing: { fill: ink.failt, line: ink.fail, width: 1.5, dash: [2, 3], text: ink.fail },
  };
  return looks[state] || looks.pending;
}

function planShape(ctx, shape, x, y, w, h) {
  const left = x - w / 2;
  const top = y - h / 2;
  ctx.beginPath();
  if (shape === "octagon") {
    const c = 9;
    ctx.moveTo(left + c, top);
    ctx.lineTo(left + w - c, top);
    ctx.lineTo(left + w, top + c);
    ctx.lineTo(left + w, top + h - c);
    ctx.lineTo(left + w - c, top + h);
    ctx.lineTo(left + c, top + h);
    ctx.lineTo(left, top + h - c);
    ctx.lineTo(left, top + c);
    ctx.closePath();
  } else {
    ctx.roundRect(left, top, w, h, shape === "pill" ? h / 2 : 5);
  }
}

function planText(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  const letters = Array.from(text);
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ctx.measureText(letters.slice(0, middle).join("") + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return letters.slice(0, low).join("") + "…";
}

function planHatch(ctx, x, y, w, h, colour) {
  ctx.save();
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2.2;
  ctx.setLineDash([]);
  ctx.beginPath();
  for (let at = -h; at < w; at += 8) {
    ctx.moveTo(x - w / 2 + at, y + h / 2);
    ctx.lineTo(x - w / 2 + at + h, y - h / 2);
  }
  ctx.stroke();
  ctx.restore();
}

function planBadge(ctx, kind, x, y, ink) {
  const fills = { failed: ink.fail, added: ink.add, changed: ink.chg, removed: ink.rem,
    new: ink.acc, done: ink.edge };
  const r = 7.5;
  ctx.save();
  ctx.translate(x, y);
  ctx.setLineDash([]);
  ctx.beginPath();
  if (kind === "failed") {
    const c = r * 0.42;
    [[-c, -r], [c, -r], [r, -c], [r, c], [c, r], [-c, r], [-r, c], [-r, -c]]
      .forEach(([px, py], i) => (i ? ctx.lineTo(px, py) : ctx.moveTo(px, py)));
    ctx.closePath();
  } else if (kind === "added") {
    ctx.roundRect(-r, -r, 2 * r, 2 * r, 2);
  } else if (kind === "changed") {
    const d = r * 1.2;
    ctx.moveTo(0, -d);
    ctx.lineTo(d, 0);
    ctx.lineTo(0, d);
    ctx.lineTo(-d, 0);
    ctx.closePath();
  } else {
    ctx.arc(0, 0, r, 0, 2 * Math.PI);
  }
  ctx.fillStyle = fills[kind];
  ctx.strokeStyle = ink.surf;
  ctx.lineWidth = 3;
  ctx.stroke();
  ctx.fill();
  ctx.lineWidth = 1.8;
  ctx.lineCap = "round";
  ctx.beginPath();
  const strokes = {
    failed: [[-2.6, -2.6, 2.6, 2.6], [2.6, -2.6, -2.6, 2.6]],
    added: [[-3.2, 0, 3.2, 0], [0, -3.2, 0, 3.2]],
    removed: [[-3.2, 0, 3.2, 0]],
    changed: [[-4.2, 1.2, -1.6, -1.6, 1.6, 1.6, 4.2, -1.2]],
    new: [[-3.2, 0.2, -1, 2.5, 3.2, -2.1]],
    done: [[-3.2, 0.2, -1, 2.5, 3.2, -2.1]],
  };
  for (const line of strokes[kind] || []) {
    for (let i = 0; i < line.length; i += 2) {
      if (i) ctx.lineTo(line[i], line[i + 1]);
      else ctx.moveTo(line[i], line[i + 1]);
    }
  }
  ctx.stroke();
  ctx.restore();
}

function planNode(ctx, node, x, y, w, marks, ink) {
  const look = planLook(node.state, ink);
  const h = node.h;
  ctx.save();
  if (marks.ring || marks.focus) {
    ctx.strokeStyle = ink.acc;
    ctx.lineWidth = 2;
    ctx.setLineDash(marks.ring ? [] : [3, 2]);
    ctx.beginPath();
    ctx.roundRect(x - w / 2 - 4, y - h / 2 - 4, w + 8, h + 8, node.shape === "pill" ? h : 9);
    ctx.stroke();
  }
  if (node.kind === "fold") {
    ctx.strokeStyle = look.line;
    ctx.lineWidth = 1;
    planShape(ctx, "box", x + 3, y - 3, w, h);
    ctx.stroke();
  }
  planShape(ctx, node.shape, x, y, w, h);
  if (look.fill) {
    ctx.fillStyle = marks.reached && node.state === "pending" ? ink.surf : look.fill;
    ctx.fill();
  }
  if (marks.reached) planHatch(ctx, x, y, w, h, ink.failt);
  ctx.setLineDash(look.dash || []);
  ctx.strokeStyle = marks.reached && !look.dash ? ink.fail : look.line;
  ctx.lineWidth = marks.reached ? Math.max(look.width, 1.75) : look.width;
  planShape(ctx, node.shape, x, y, w, h);
  ctx.stroke();
  planWords(ctx, node, x, y, w, look, ink);
  ctx.restore();
  node.badges.slice(0, 3).reverse().forEach((kind, index, all) => {
    const back = all.length - 1 - index;
    planBadge(ctx, kind, x + w / 2 - 4 - back * 18, y - h / 2, ink);
  });
}

function planWords(ctx, node, x, y, w, look, ink) {
  ctx.textBaseline = "alphabetic";
  ctx.setLineDash([]);
  if (node.shape === "pill") {
    ctx.font = `12px ${ink.sans}`;
    ctx.fillStyle = look.text || ink.ink;
    ctx.textAlign = "center";
    ctx.fillText(planText(ctx, node.title, w - 8), x, y + 4);
    return;
  }
  ctx.textAlign = "left";
  ctx.fillStyle = look.text || ink.ink;
  const left = x - w / 2 + 9;
  const first = node.sub ? y - 2 : y + 4;
  ctx.font = `700 12px ${ink.sans}`;
  const label = node.label ? `${node.label} ` : "";
  ctx.fillText(label, left, first);
  const used = label ? ctx.measureText(label).width : 0;
  ctx.font = `${node.kind === "fold" ? "700 " : ""}12px ${ink.sans}`;
  const title = planText(ctx, node.title, w - 15 - used);
  ctx.fillText(title, left + used, first);
  if (node.state === "removed") {
    ctx.fillRect(left, first - 4.5, used + ctx.measureText(title).width, 1.2);
  }
  if (!node.sub) return;
  ctx.font = `10.5px ${ink.sans}`;
  ctx.fillStyle = look.text || ink.mute;
  ctx.fillText(planText(ctx, node.sub, w - 15), left, y + 12);
}

function planEdgeStyle(edge, reached, ink) {
  if (reached) return { color: ink.fail, width: 2, dashes: [6, 3], size: 0.55 };
  const styles = {
    added: { color: ink.add, width: 2.5, dashes: false, size: 0.5 },
    removed: { color: ink.rem, width: 1.5, dashes: [3, 3], size: 0.5 },
    broken: { color: ink.fail, width: 1.5, dashes: [2, 3], size: 0.5 },
    cycle: { color: ink.fail, width: 2, dashes: [2, 2], size: 0.5 },
  };
  const style = styles[edge.mark] || { color: ink.edge, width: 1.25, dashes: false, size: 0.5 };
  const line = { values: { dashes: [8, 3] }, order: { dashes: [1.5, 3.5], width: 1 } }[edge.origin];
  return line && ["", "added"].includes(edge.mark) ? { ...style, ...line } : style;
}
