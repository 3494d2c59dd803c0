/* Paints the picture of a plan (pararecover_core/draw.py) with vis-network on a canvas.
 *
 *   mountPlan(el, picture, {onSelect, loadVis, ariaLabel})
 *     -> {update(picture), select(id|null), impact(ids|null), reach(id), fit(), height(width), destroy()}
 *
 * Needs plan_ink.js before it.
 * el        an element with a size of its own; plan.css must be in the same root
 * onSelect  called with a node's id, or null where the empty canvas was clicked
 * loadVis   () -> Promise of the vis object; by default loadVisNetwork() below
 * impact    hatches the nodes with these ids (what a fault reaches)
 * reach     ids that lie downstream of a node, as drawn
 * height    height that the picture wants at a width
 * Every text goes through fillText or textContent.
 */

function loadVisNetwork() {
  if (window.vis && window.vis.Network) return Promise.resolve(window.vis);
  if (!window.pararecoverVis) {
    window.pararecoverVis = new Promise((resolve, reject) => {
      const script = document.createElement("script");
      const base = new URL(document.baseURI).pathname.replace(/[^/]*$/, "");
      script.src = `${base}app/static/vis-network.min.js`;
      script.onload = () => resolve(window.vis);
      script.onerror = () => {
        window.pararecoverVis = null;
        reject(new Error("The drawing library is missing. Restart the app with: pararecover app"));
      };
      document.head.appendChild(script);
    });
  }
  return window.pararecoverVis;
}

/* ---- the mounted picture -------------------------------------------------------------------- */

function planElements(el, label) {
  const make = (tag, name) => {
    const made = document.createElement(tag);
    made.className = name;
    return made;
  };
  const root = make("div", "plan-root");
  const canvas = make("div", "plan-canvas");
  const probe = make("span", "plan-probe");
  const theme = make("span", "plan-probe plan-theme");
  const tip = make("div", "plan-tip");
  const note = make("div", "plan-note");
  const legend = make("div", "plan-legend");
  const text = make("pre", "plan-raw");
  const list = make("ul", "plan-list");
  const whole = make("button", "plan-whole");
  whole.type = "button";
  whole.textContent = "Whole plan";
  whole.hidden = true;
  tip.hidden = note.hidden = text.hidden = true;
  tip.setAttribute("role", "tooltip");
  canvas.setAttribute("role", "img");
  list.setAttribute("aria-label", label || "Nodes of the plan");
  root.append(probe, theme, canvas, list, legend, note, whole, tip, text);
  el.replaceChildren(root);
  return { root, canvas, probe, theme, tip, note, text, list, whole, legend };
}

function planItems(picture, fit, marks, ink) {
  const nodes = [];
  const edges = [];
  const blank = () => ({ drawNode() {}, nodeDimensions: { width: 1, height: 1 } });
  const spot = (id, x, y) => nodes.push({ id, x, y, fixed: true, shape: "custom", size: 0,
    physics: false, ctxRenderer: blank, chosen: false });
  const at = {};
  for (const node of picture.nodes) {
    const column = fit.columns[node.layer];
    const w = Math.min(node.w, column.w);
    const x = column.x;
    const y = fit.y(node.y);
    at[node.key] = { node, x, y, w };
    nodes.push({ id: `n:${node.key}`, x, y, fixed: true, shape: "custom", physics: false,
      chosen: false,
      ctxRenderer: ({ ctx }) => ({
        drawNode: () => planNode(ctx, node, x, y, w, marks(node), ink()),
        nodeDimensions: { width: w, height: node.h },
      }) });
    spot(`i:${node.key}`, x - w / 2, y + 0.02); // level edges lose their arrow in vis-network
    spot(`o:${node.key}`, x + w / 2 + 1, y);
  }
  picture.edges.forEach((edge, index) => {
    const from = at[edge.from];
    const to = at[edge.to];
    if (!from || !to) return;
    let points = edge.via.map((p) => {
      const column = fit.columns[p.layer];
      return [[column.x - column.w / 2, fit.y(p.y)], [column.x + column.w / 2, fit.y(p.y)]];
    }).flat();
    if (edge.mark === "cycle") {
      const lane = Math.min(from.y, to.y) - 32;
      points = [[from.x + from.w / 2 + 8, lane], [to.x - to.w / 2 - 8, lane]];
    }
    const stops = [`o:${edge.from}`];
    points.forEach(([x, y], i) => {
      const id = `v:${index}:${i}`;
      spot(id, x, y);
      stops.push(id);
    });
    stops.push(`i:${edge.to}`);
    for (let i = 0; i + 1 < stops.length; i++) {
      edges.push({ id: `e:${index}:${i}`, from: stops[i], to: stops[i + 1], at: index,
        last: i + 2 === stops.length });
    }
  });
  return { nodes, edges, at };
}

function planStyled(items, picture, reached, ink) {
  return items.edges.map((part) => {
    const edge = picture.edges[part.at];
    const hit = reached.has(edge.to) && (reached.has(edge.from) || reached.source === edge.from);
    const style = planEdgeStyle(edge, hit, ink);
    return {
      id: part.id, from: part.from, to: part.to, width: style.width, dashes: style.dashes,
      color: { color: style.color, highlight: style.color, hover: style.color, inherit: false },
      arrows: { to: { enabled: part.last, type: "arrow", scaleFactor: style.size } },
      hoverWidth: 0, selectionWidth: 0, chosen: false,
    };
  });
}

const PLAN_OPTIONS = {
  autoResize: false,
  layout: { improvedLayout: false, hierarchical: false },
  physics: { enabled: false },
  nodes: { borderWidth: 0 },
  edges: { smooth: { enabled: true, type: "cubicBezier", forceDirection: "horizontal",
    roundness: 0.5 }, endPointOffset: { from: 0, to: 0 } },
  interaction: { hover: true, keyboard: false, zoomView: false, dragNodes: false,
    dragView: true, selectable: false, selectConnectedEdges: false,
    hoverConnectedEdges: false, multiselect: false, tooltipDelay: 100000 },
};

function mountPlan(el, picture, options) {
  const { onSelect = () => {}, loadVis = loadVisNetwork, ariaLabel = "" } = options || {};
  const parts = planElements(el, ariaLabel);
  const view = { picture, vis: null, network: null, fit: null, items: null, ink: null,
    selected: picture.selected ?? null, reached: new Set(), hover: null, focus: null,
    small: false, gone: false };

  const marks = (node) => ({
    ring: view.selected !== null && node.ids.includes(view.selected),
    focus: view.focus === node.key,
    reached: view.reached.has(node.key),
  });

  function keysOf(id) {
    return view.picture.nodes.filter((node) => node.ids.includes(id)).map((node) => node.key);
  }

  function build() {
    const p = view.picture;
    parts.canvas.hidden = !p.nodes.length;
    parts.text.hidden = !!p.nodes.length;
    parts.text.textContent = p.nodes.length ? "" : p.raw || "There is no plan.";
    parts.canvas.setAttribute("aria-label", p.alt);
    parts.note.textContent = [p.fault && `S5 = 0: ${p.fault}`, p.note].filter(Boolean).join(". ");
    parts.note.hidden = !parts.note.textContent;
    parts.legend.hidden = !(p.legend && p.legend.length);
    parts.legend.classList.toggle("above", !parts.note.hidden);
    parts.legend.replaceChildren(...(p.legend || []).map(([origin, words]) => {
      const key = document.createElement("span");
      key.className = `plan-key ${origin}`;
      key.textContent = words;
      return key;
    }));
    listNodes();
    draw();
  }

  function draw() {
    const width = parts.canvas.clientWidth;
    const height = parts.canvas.clientHeight;
    if (!view.vis || !view.picture.nodes.length || !width || !height) return;
    view.ink = planColours(parts.probe);
    view.fit = planFit(view.picture, width, height);
    view.items = planItems(view.picture, view.fit, marks, () => view.ink);
    const data = {
      nodes: new view.vis.DataSet(view.items.nodes),
      edges: new view.vis.DataSet(styled()),
    };
    view.edges = data.edges;
    if (view.network) view.network.setData(data);
    else start(data);
    view.network.setSize(`${width}px`, `${height}px`);
    view.network.redraw();
    look();
  }

  function styled() {
    return planStyled(view.items, view.picture, view.reached, view.ink);
  }

  function start(data) {
    view.network = new view.vis.Network(parts.canvas, data, PLAN_OPTIONS);
    const frame = parts.canvas.querySelector(".vis-network");
    if (frame) frame.tabIndex = -1;
    view.network.on("beforeDrawing", bands);
    view.network.on("click", (event) => {
      const node = nodeAt(event.pointer.DOM);
      if (node && node.kind === "missing") return;
      onSelect(node ? node.id : null, node ? node.ids : []);
    });
    view.network.on("hoverNode", (event) => hover(event.node));
    view.network.on("blurNode", () => hover(null));
    view.network.on("dragStart", () => hover(null));
  }

  function nodeAt(point) {
    const place = view.network.DOMtoCanvas(point);
    const near = Object.values(view.items.at).find(
      (item) => Math.abs(place.x - item.x) <= item.w / 2 + 4
        && Math.abs(place.y - item.y) <= item.node.h / 2 + 4);
    return near ? near.node : null;
  }

  function bands(ctx) {
    const ink = view.ink;
    for (const band of view.picture.bands) {
      const [first, last] = band.layers.map((layer) => view.fit.columns[layer]);
      const x0 = first.x - first.w / 2 - 6;
      const x1 = last.x + last.w / 2 + 6;
      ctx.fillStyle = ink.sunk;
      ctx.beginPath();
      ctx.roundRect(x0, 2, x1 - x0, view.fit.height - 4, 6);
      ctx.fill();
      ctx.font = `11px ${ink.sans}`;
      ctx.fillStyle = ink.mute;
      ctx.textAlign = "center";
      ctx.textBaseline = "alphabetic";
      ctx.fillText(band.caption, (x0 + x1) / 2, 16);
    }
  }

  /* What the canvas shows: the whole where it is readable, else the part that matters. */
  function look() {
    const { fit, network } = view;
    const width = parts.canvas.clientWidth;
    const height = parts.canvas.clientHeight;
    let scale = fit.scale;
    if (view.small) scale = Math.min(scale, width / fit.width, height / fit.height);
    const half = { x: width / scale / 2, y: height / scale / 2 };
    const wanted = interest();
    const along = (size, middle, at) => (size <= 2 * middle + 1 ? size / 2
      : Math.min(Math.max(at, middle), size - middle));
    network.moveTo({ scale, position: {
      x: along(fit.width, half.x, wanted.x), y: along(fit.height, half.y, wanted.y) } });
    parts.whole.hidden = fit.whole;
    parts.whole.textContent = view.small ? "Readable size" : "Whole plan";
    network.setOptions({ interaction: { dragView: !fit.whole } });
  }

  function interest() {
    const keys = view.selected === null ? [] : keysOf(view.selected);
    if (keys.length && view.items.at[keys[0]]) return view.items.at[keys[0]];
    const band = view.picture.bands[0];
    if (!band) return { x: 0, y: 0 };
    const column = view.fit.columns[band.layers[0]];
    const node = Object.values(view.items.at).find((item) => item.node.layer === band.layers[0]);
    return { x: column.x, y: node ? node.y : 0 };
  }

  function hover(id) {
    const item = id && id.startsWith("n:") ? view.items.at[id.slice(2)] : null;
    parts.tip.hidden = !item;
    parts.canvas.style.cursor = item && item.node.kind !== "missing" ? "pointer" : "";
    if (!item) return;
    parts.tip.textContent = item.node.tip;
    const place = view.network.canvasToDOM({ x: item.x, y: item.y + item.node.h / 2 });
    const width = parts.root.clientWidth;
    const wide = Math.min(320, width - 8);
    parts.tip.style.maxWidth = `${wide}px`;
    const left = Math.max(4, Math.min(place.x - 40, width - wide - 4));
    parts.tip.style.left = `${left}px`;
    parts.tip.style.top = `${place.y + 6}px`;
  }

  function listNodes() {
    parts.list.replaceChildren(...view.picture.nodes.map((node, index) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = index ? -1 : 0;
      button.textContent = node.say;
      button.addEventListener("click", () => onSelect(node.id, node.ids));
      button.addEventListener("focus", () => focus(node.key));
      button.addEventListener("blur", () => focus(null));
      item.append(button);
      return item;
    }));
  }

  function focus(key) {
    view.focus = key;
    if (view.network) view.network.redraw();
  }

  function step(event) {
    const ways = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const buttons = Array.from(parts.list.querySelectorAll("button"));
    const now = buttons.indexOf(event.target);
    if (!(event.key in ways) || now < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = buttons[(now + ways[event.key] + buttons.length) % buttons.length];
    buttons.forEach((button) => { button.tabIndex = button === next ? 0 : -1; });
    next.focus();
  }

  function zoom(event) {
    if (!event.ctrlKey || !view.network) return;
    event.preventDefault();
    const scale = view.network.getScale();
    const next = Math.min(3, Math.max(0.1, scale * (event.deltaY < 0 ? 1.15 : 1 / 1.15)));
    const box = parts.canvas.getBoundingClientRect();
    const point = view.network.DOMtoCanvas({ x: event.clientX - box.left,
      y: event.clientY - box.top });
    const centre = view.network.getViewPosition();
    const share = scale / next;
    hover(null);
    view.network.setOptions({ interaction: { dragView: true } });
    view.network.moveTo({ scale: next, position: {
      x: point.x + (centre.x - point.x) * share, y: point.y + (centre.y - point.y) * share } });
  }

  function repaint() {
    if (!view.network || !view.items) return;
    view.ink = planColours(parts.probe);
    view.edges.update(styled());
    view.network.redraw();
  }

  const observer = new ResizeObserver(() => {
    const size = `${parts.canvas.clientWidth}x${parts.canvas.clientHeight}`;
    if (size !== view.size) {
      view.size = size;
      draw();
    }
  });

  const api = {
    update(next) {
      view.picture = next;
      view.selected = next.selected ?? null;
      view.reached = new Set();
      hover(null);
      build();
    },
    select(id) {
      view.selected = id;
      if (view.network) view.network.redraw();
    },
    impact(ids, source) {
      const wanted = new Set(ids || []);
      view.reached = new Set(view.picture.nodes
        .filter((node) => node.ids.some((id) => wanted.has(id))).map((node) => node.key));
      view.reached.source = source === undefined ? keysOf(view.selected)[0] : keysOf(source)[0];
      repaint();
    },
    reach(id) {
      const found = new Set();
      const waiting = keysOf(id);
      const start = new Set(waiting);
      while (waiting.length) {
        const key = waiting.pop();
        for (const edge of view.picture.edges) {
          if (edge.from === key && !found.has(edge.to)) {
            found.add(edge.to);
            waiting.push(edge.to);
          }
        }
      }
      return view.picture.nodes.filter((node) => found.has(node.key) && !start.has(node.key))
        .flatMap((node) => node.ids);
    },
    fit() {
      if (view.network) look();
    },
    height(width) {
      const fit = planFit(view.picture, width, 0);
      return Math.ceil(fit.height * fit.scale);
    },
    destroy() {
      view.gone = true;
      observer.disconnect();
      if (view.network) view.network.destroy();
      view.network = null;
      el.replaceChildren();
    },
  };

  parts.whole.addEventListener("click", () => {
    view.small = !view.small;
    look();
  });
  parts.list.addEventListener("keydown", step);
  parts.canvas.addEventListener("wheel", zoom, { passive: false });
  parts.canvas.addEventListener("mouseleave", () => hover(null));
  parts.theme.addEventListener("transitionend", repaint); // its colour moves with the theme
  if (document.fonts && document.fonts.ready) document.fonts.ready.then(repaint);
  observer.observe(parts.canvas);
  build();
  loadVis().then((vis) => {
    if (view.gone) return;
    view.vis = vis;
    draw();
  }, (error) => {
    parts.note.hidden = false;
    parts.note.textContent = error.message;
  });
  return api;
}
