/* Small tools for building the page. Text always goes in as text. */

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

const ICONS = {
  down: [["path", { d: "M4 6l4 4 4-4" }]],
  left: [["path", { d: "M10 4L6 8l4 4" }]],
  right: [["path", { d: "M6 4l4 4-4 4" }]],
  tick: [["path", { d: "M3 8.500l3.200 3L13 4.500" }]],
  note: [["path", { d: "M3 3h10v7l-3 3H3zM10 13v-3h3" }]],
  flag: [["path", { d: "M4 14V3h8l-2 3 2 3H4" }]],
  blind: [["path", { d: "M2 8s2.200-4 6-4 6 4 6 4-2.200 4-6 4-6-4-6-4zM3 13L13 3" }]],
  eye: [
    ["path", { d: "M2 8s2.200-4 6-4 6 4 6 4-2.200 4-6 4-6-4-6-4z" }],
    ["circle", { cx: 8, cy: 8, r: 1.8 }],
  ],
};

const BADGES = {
  added: ["rect", { x: 2, y: 2, width: 14, height: 14, rx: 2 }, "M5.8 9h6.4M9 5.8v6.4", "add"],
  removed: ["circle", { cx: 9, cy: 9, r: 7 }, "M5.8 9h6.4", "rem"],
  changed: [
    "path",
    { d: "M9 .5L17.500 9 9 17.500.5 9z" },
    "M5.400 10c1.500-3.500 2.600-2.500 3.600-1s2.100 2.500 3.600-1",
    "chg",
  ],
  newly_done: ["circle", { cx: 9, cy: 9, r: 7 }, "M5.8 9.200l2.200 2.300 4.200-4.600", "acc"],
  failed: [
    "path",
    { d: "M5.850 2h6.300L16 5.850v6.300L12.150 16h-6.300L2 12.150v-6.300z" },
    "M6.400 6.400l5.200 5.200M11.600 6.400l-5.200 5.200",
    "fail",
  ],
};

function vector(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function icon(name) {
  const frame = vector("svg", { class: "ic", viewBox: "0 0 16 16", "aria-hidden": "true" });
  for (const [tag, attributes] of ICONS[name]) frame.append(vector(tag, attributes));
  return frame;
}

function badge(name) {
  const [tag, attributes, sign, colour] = BADGES[name];
  const frame = vector("svg", { class: "bd", viewBox: "0 0 18 18", "aria-hidden": "true" });
  frame.append(vector(tag, { ...attributes, fill: `var(--${colour})` }));
  frame.append(vector("path", { d: sign, class: "sign" }));
  return frame;
}

function key(text) {
  return make("kbd", { text });
}

function button(label, hint, act, options) {
  const { cls = "", aria = label, keyed = true } = options || {};
  return make(
    "button",
    {
      type: "button",
      class: `btn ${cls}`,
      "aria-label": aria,
      onclick: act,
      onmousedown: (event) => event.preventDefault(), // keys stay with the page, not the button
    },
    hint && keyed ? key(hint) : null,
    make("span", { text: label }),
  );
}

/* A text that may have been cut: text, or {text, length, field}. */
function shortOf(value) {
  return typeof value === "string" ? value : value.text;
}

function cutText(value, more, cls) {
  if (typeof value === "string") return make("span", { class: cls, text: value });
  const rest = `show all ${value.length.toLocaleString("en")} characters`;
  return make(
    "span",
    { class: cls },
    `${value.text}… `,
    make("button", { type: "button", class: "more", text: rest, onclick: () => more(value.field) }),
  );
}

function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const rest = String(whole % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

function written(value) {
  return value === null || value === undefined ? "no score" : String(value);
}

function timeOf(iso) {
  const when = iso ? new Date(iso) : null;
  return when && !Number.isNaN(when.getTime()) ? when.toLocaleTimeString("en-GB") : "";
}
