/* One item of the Trajectories page: its rounds, the plan of one round, and what changed. */

const MARKS = { failed: "failed", added: "added", removed: "removed", changed: "changed", new: "newly_done" };
const STEP = {
  ran: ["M-3.500 0l2.500 2.500 4.500-5", "its calls ran"],
  failed: ["M-3-3l6 6M3-3l-6 6", "a call failed"],
  grew: ["M-3.500 0h7M0-3.500v7", "the plan grew"],
  plan: ["M-3.500 0h7", "planned, not run"],
};

function makeDetail(card, { open, go }) {
  const head = make("div", { class: "dh" });
  const steps = make("div", { class: "stp" });
  const canvas = make("div", { class: "draw" });
  const line = make("div", { class: "imp" });
  const side = make("div", { class: "dr", tabindex: "0", role: "region", "aria-label": "What happened in this round" });
  const grid = make("div", { class: "dg" }, make("div", { class: "dl" }, canvas, line), side);
  const none = make("div", { class: "empty" });
  card.append(head, steps, grid, none);
  let plan = null;
  let item = null;
  let now = null;
  let place = 0;
  let selected = null;

  function select(id) {
    selected = id === selected ? null : id;
    if (!plan) return;
    plan.select(selected);
    plan.impact(selected === null ? [] : plan.reach(selected), selected);
    below();
    beside();
  }

  function show(next, at, content) {
    const other = !item || item.key !== next.key;
    item = next;
    none.hidden = true;
    grid.hidden = steps.hidden = head.hidden = false;
    heading();
    strip(at);
    if (content) round(at, content, other);
    else place = at;
  }

  function round(at, content, other) {
    const kept = !other && selected !== null && content.picture.nodes.some((node) => node.ids.includes(selected));
    const same = now === content;
    place = at;
    now = content;
    if (same) return;
    if (!plan) plan = mountPlan(canvas, content.picture, { onSelect: select, ariaLabel: "Nodes of the plan" });
    else plan.update(content.picture);
    if (!kept) selected = null;
    else {
      plan.select(selected);
      plan.impact(plan.reach(selected), selected);
    }
    below();
    beside();
  }

  function heading() {
    const parts = [item.hidden ? "" : item.agent, item.level ? `level ${item.level}` : "", item.source];
    const suffice = item.round_gt ? ` where ${item.round_gt} suffice` : "";
    if (item.run) parts.push(`${item.rounds} rounds${suffice}`);
    else if (item.rounds) parts.push(`round ${item.rounds}${item.round_gt ? ` of ${item.round_gt}` : ""}`);
    if (item.kind === "records") parts.push(`${item.strip.filter((s) => s.mark !== "plan").length} records of one rollout`);
    const e5 = item.e5 ? make("span", { class: "tag", text: item.e5 }) : null;
    const state = item.success === null ? null : make("span", { class: `tag ${item.success ? "" : "fail"}`, text: item.success ? "reached the response" : `ended: ${item.outcome || "failed"}` });
    head.replaceChildren(...[
      make("h2", { text: item.id, title: item.key }),
      make("span", { class: "quiet what", text: parts.filter(Boolean).join(", ") }),
      item.hidden ? make("span", { class: "tag blind" }, icon("blind"), "Blind") : null,
      e5, state, make("span", { class: "gap" }), legend(), answers(),
      item.hidden ? null : make("a", { class: "btn", href: `case_study?item=${encodeURIComponent(item.key)}`, text: "Make case study" }),
      item.replan ? make("a", { class: "btn p", href: `annotate?item=${encodeURIComponent(item.replan)}`, text: "Score this item" }) : null,
    ].filter(Boolean));
  }

  function answers() {
    if (item.others.length < 2 && !(item.others.length && !item.replan)) return null;
    const select = make("select", { class: "sel", "aria-label": "Answer of which agent" },
      item.others.map((one) => make("option", { value: one.key, text: one.agent || "(no name)", selected: one.key === item.key })));
    select.addEventListener("change", () => open(select.value));
    return select;
  }

  function legend() {
    const part = (sign, words) => make("span", {}, glyph(sign), ` ${words}`);
    return make("span", { class: "quiet leg" }, part("ran", "ran"), part("failed", "a call failed"), part("grew", "plan grew"),
      item.round_gt && item.strip.some((s) => s.number >= item.round_gt) ? make("span", { text: "┊ optimum" }) : null);
  }

  function glyph(mark) {
    const frame = vector("svg", { class: `gl ${mark}`, width: 14, height: 12, viewBox: "-9 -7 18 14", "aria-hidden": "true" });
    frame.append(vector("path", { d: STEP[mark][0] }));
    return frame;
  }

  function strip(at) {
    steps.hidden = item.strip.length < 2;
    if (steps.hidden) return;
    const cells = item.strip.map((one, index) => make("button", {
      type: "button", tabindex: "-1", class: `sp1 ${one.mark}${index === at ? " cur" : ""}${item.round_gt === one.number ? " opt" : ""}`,
      "aria-current": index === at ? "step" : null, title: `Round ${one.number}: ${STEP[one.mark][1]}`, onclick: () => go(index),
    }, glyph(one.mark), make("span", { text: one.number })));
    const range = steps.querySelector("input") || make("input", { type: "range", min: "0", step: "1", "aria-label": "Round" });
    range.max = String(item.strip.length - 1);
    range.value = String(at);
    range.setAttribute("aria-valuetext", `Round ${item.strip[at].number}: ${STEP[item.strip[at].mark][1]}`);
    range.oninput = () => go(Number(range.value));
    const row = make("div", { class: "steps" }, cells);
    row.style.gridTemplateColumns = `repeat(${cells.length}, minmax(0, ${cells.length < 12 ? "72px" : "1fr"}))`;
    const held = steps.querySelector(".mid");
    if (held) held.querySelector(".steps").replaceWith(row);
    else {
      const arrow = (words, mark, step) => make("button", { type: "button", class: "key", "aria-label": words, onclick: () => go(place + step) }, key(mark));
      steps.replaceChildren(arrow("Previous round", "←", -1), make("div", { class: "mid" }, row, range), arrow("Next round", "→", 1));
    }
    const mid = steps.querySelector(".mid");
    mid.style.maxWidth = cells.length < 12 ? `${cells.length * 75}px` : "";
  }

  function below() {
    if (selected !== null) {
      const reached = plan.reach(selected);
      const all = now.picture.nodes.filter((node) => !["ghost", "missing"].includes(node.state)).flatMap((node) => node.ids);
      const rest = all.filter((id) => !reached.includes(id) && id !== selected && id !== "root");
      line.replaceChildren(make("b", { text: `Impact of node ${short(selected, 24)}` }),
        make("span", {}, make("i", { class: "sw" }), `reached: ${few(reached)}`),
        make("span", { class: "quiet", text: `not reached: ${few(rest)}` }), make("span", { class: "gap" }),
        make("button", { type: "button", class: "key", "aria-label": "Clear the selection", onclick: () => select(selected) }, key("Esc")));
      return;
    }
    const counts = now.picture.counts;
    const parts = ["added", "removed", "changed", "newly_done", "failed"].filter((name) => counts[name])
      .map((name) => make("span", {}, badge(name), `${name.replace("_", " ")} `, make("b", { text: counts[name] })));
    line.replaceChildren(make("b", { text: `Plan at round ${now.number}` }),
      ...(parts.length ? parts : [make("span", { class: "quiet", text: now.since === null ? "the first known round" : "nothing changed" })]),
      make("span", { class: "gap" }), make("span", { class: "quiet", text: "click a node: what it reaches" }));
  }

  function beside() {
    const blocks = [];
    if (item.note) blocks.push(make("p", { class: "notice", text: item.note }));
    if (selected !== null) blocks.push(...node());
    if (now.since !== null) {
      blocks.push(make("h3", { text: `What changed since round ${now.since}` }));
      blocks.push(now.changes.length ? make("ul", {}, now.changes.map(change))
        : make("p", { class: "quiet", text: "Nothing: the plan is the same." }));
    }
    if (now.thought.length) blocks.push(make("h3", { text: "Thought" }), thought());
    else if (now.answer) blocks.push(make("h3", { text: "Thought" }), make("p", { class: "quiet", text: "The answer has no thought." }));
    if (now.before) blocks.push(make("h3", { text: `Observations of round ${now.since}` }), table(now.before));
    if (now.own.length || !now.answer) blocks.push(make("h3", { text: `Observations of round ${now.number}` }), table(now.own));
    if (item.reason && !now.answer) blocks.push(make("h3", { text: "Error as the file tells it" }), make("p", { text: item.reason }));
    blocks.push(make("h3", { text: "Query" }), make("p", { text: item.text || "(no query)" }));
    if (item.errors.length) blocks.push(make("p", { class: "quiet", text: `Errors: ${item.errors.map((name) => name.replaceAll("_", " ")).join(", ")}` }));
    side.replaceChildren(...blocks);
    side.scrollTop = 0;
  }

  function node() {
    const found = now.nodes[selected];
    const title = make("h3", { text: `Node ${short(selected, 40)}${found && found.name ? ` ${found.name}` : ""}` });
    if (!found) return [title];
    const needs = found.needs.length ? `needs ${found.needs.join(", ")}` : "needs nothing";
    return [title, make("p", { class: "mono", text: found.call === "nothing" ? "no parameters" : found.call }),
      make("p", { class: "quiet", text: `${needs}, ${found.done ? "done" : "pending"}` }),
      found.text ? make("p", { text: found.text }) : null].filter(Boolean);
  }

  function change(entry) {
    const ids = entry.ids.slice(0, 8).flatMap((id, at) => [at ? ", " : "", pick(id)]);
    return make("li", {}, badge(MARKS[entry.mark]), make("span", {}, ids, entry.ids.length > 8 ? ` and ${entry.ids.length - 8} more` : "", ` ${entry.text}`));
  }

  function pick(id) {
    return make("button", { type: "button", class: "plain", text: short(id, 24), onclick: () => select(id) });
  }

  function thought() {
    return make("p", { class: "th" }, now.thought.map((part) => {
      if (typeof part === "string") return part;
      const [text, kind, ref] = part;
      if (kind === "node") return make("button", { type: "button", class: "nd", text, onclick: () => select(ref || text) });
      return make("span", { class: kind === "tool" ? "tl" : "cd", text });
    }));
  }

  function table(rows) {
    if (!rows.length) return make("p", { class: "quiet", text: "None in the file." });
    return make("table", { class: "ob" }, make("tbody", {}, rows.map((call) => make("tr", { class: call.state === "ok" ? null : "er" },
      make("td", { class: "b" }, call.node ? pick(call.node) : "–"), make("td", { text: call.tool, title: call.tool }),
      make("td", { class: "mono", text: call.result || "(empty)" }),
      make("td", { class: "st", text: call.state === "ok" ? "✓ ok" : `✕ ${call.state}` })))));
  }

  function blank(words) {
    item = now = null;
    selected = null;
    grid.hidden = steps.hidden = head.hidden = true;
    none.hidden = false;
    none.replaceChildren(...words);
  }

  return {
    show, select, blank,
    selected: () => selected,
    destroy: () => plan && plan.destroy(),
  };
}

function short(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

function few(ids) {
  if (!ids.length) return "none";
  const shown = ids.slice(0, 12).map((id) => short(id, 16)).join(", ");
  return ids.length > 12 ? `${shown} and ${ids.length - 12} more` : shown;
}
