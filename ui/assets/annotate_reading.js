/* The left side: query, plans, node inspector, thought, observations, tools. */

const LEGEND = ["added", "removed", "changed", "newly_done", "failed"];
const STATE_SIGNS = { ok: "✓", error: "✕", timeout: "✕", empty: "○" };
const NAMED_IDS = 40; // ids that a line names before "and N more"
const PLANE = { least: 112, share: 0.285 }; // height of a plan: pixels, share of the bench

function makeReading(hooks) {
  const at = { content: null, node: null, wide: false, details: false, plans: {} };
  const parts = {};

  /* ---- frame, built once ---- */

  function card(cls, label, ...children) {
    return make("section", { class: `card ${cls}`, "aria-label": label }, ...children);
  }

  function build() {
    parts.queryText = make("p", { class: "query-text" });
    parts.query = make(
      "button",
      {
        type: "button",
        class: "query-fold",
        "aria-label": "Show the whole query (Q)",
        "aria-expanded": "false",
        onclick: toggleQuery,
        onmousedown: (event) => event.preventDefault(),
      },
      icon("down"),
    );
    parts.legend = make("div", { class: "legend" });
    parts.before = plane("Before");
    parts.after = plane("After");
    parts.strip = make("div", { class: "strip", "aria-live": "polite" });
    parts.details = make("div", { class: "details", hidden: true, tabindex: "-1" });
    parts.thought = make("div", { class: "thought" });
    parts.observations = make("div", { class: "observations" });
    parts.seen = make("span", { class: "quiet" });
    const head = (title, ...more) =>
      make("div", { class: "head" }, make("b", { text: title }), ...more);
    return make(
      "div",
      { class: "left" },
      card(
        "query",
        "Query",
        parts.query,
        parts.queryText,
        make("span", { class: "opt" }, key("Q")),
      ),
      card(
        "plans",
        "Plan before and after",
        head("Plan", make("span", { class: "gap" }), parts.legend),
        parts.before.pane,
        parts.after.pane,
        parts.details,
        parts.strip,
      ),
      make(
        "div",
        { class: "two" },
        card(
          "scrolls",
          "Thought",
          head(
            "Thought",
            make("span", { class: "gap" }),
            make("span", { class: "quiet", text: "click a node id to select it" }),
          ),
          parts.thought,
        ),
        card(
          "scrolls",
          "Observations and tools",
          head("Observations", make("span", { class: "gap" }), parts.seen),
          parts.observations,
          tools.root,
        ),
      ),
    );
  }

  function plane(title) {
    const area = make("div", { class: "plan-area" });
    const words = make("div", { class: "plan-words", hidden: true });
    const pane = make(
      "div",
      { class: "plane" },
      make("b", { class: "plane-name", text: title }),
      area,
      words,
    );
    return { pane, area, words };
  }

  /* ---- one item ---- */

  function show(content, revealed) {
    const fresh = !at.content || at.content.key !== content.key;
    at.content = content;
    if (fresh) Object.assign(at, { node: null, details: false, states: statesOf(content) });
    parts.queryText.replaceChildren(
      make("b", { text: "Query" }),
      "\u2002",
      cutText(content.query, hooks.full),
    );
    parts.legend.replaceChildren(...legendOf(content));
    drawPlan("before", content.before);
    drawAfter(content);
    parts.thought.replaceChildren(...thoughtOf(content, revealed));
    parts.seen.textContent = seenOf(content.observations);
    parts.observations.replaceChildren(observationsOf(content.observations));
    tools.show(content.tools);
    select(at.node, true);
    fit();
  }

  /* Both plans get the height that the taller one wants, as far as the page has it. */
  function fit(room) {
    at.room = room || at.room || 800;
    const width = parts.before.area.clientWidth;
    if (!width || !at.content) return;
    const shown = parts.after.area.hidden ? [at.plans.before] : Object.values(at.plans);
    const want = Math.max(PLANE.least, ...shown.map((plan) => plan.height(width)));
    const least = parts.after.words.hidden ? want : Math.max(want, 150);
    root.style.setProperty("--plane", `${Math.min(least, at.room * PLANE.share)}px`);
  }

  function statesOf(content) {
    const states = {};
    for (const node of content.before.nodes) for (const id of node.ids) states[id] = node.state;
    for (const node of content.after ? content.after.nodes : []) {
      if (node.state === "added") states[node.id] = "added";
    }
    return states;
  }

  function legendOf(content) {
    const counts = (content.after || content.before).counts;
    return LEGEND.filter((name) => counts[name]).map((name) =>
      make(
        "span",
        {},
        badge(name),
        `${name.replace("_", " ")} `,
        make("b", { text: counts[name] }),
      ),
    );
  }

  function drawPlan(side, picture) {
    const plan = at.plans[side];
    if (plan) plan.update(picture);
    else {
      at.plans[side] = mountPlan(parts[side].area, picture, {
        ariaLabel: side === "before" ? "Nodes of the plan before" : "Nodes of the plan after",
        onSelect: (id) => select(id),
      });
    }
  }

  function drawAfter(content) {
    const { area, words } = parts.after;
    const drawn = content.after && content.after.nodes.length > 0 && !content.raw;
    area.hidden = !drawn;
    words.hidden = drawn;
    if (drawn) drawPlan("after", content.after);
    else words.replaceChildren(...(content.answer ? unparsed(content) : noAnswer()));
  }

  function unparsed(content) {
    const reason = content.s5 ? content.s5.reason : "";
    return [
      make("p", {}, make("b", { text: "This plan does not parse: S5 = 0. " }), `${reason}.`),
      make("pre", {}, cutText(content.raw || "The answer holds no plan.", hooks.full)),
    ];
  }

  function noAnswer() {
    return [
      make("p", {}, make("b", { text: "No answer yet." })),
      make("p", {
        text:
          "This instance has no replan to score. Bring one: on the Dataset page drop a results " +
          "spreadsheet (columns id, thought, replan), or run: pararecover import results.xlsx",
      }),
    ];
  }

  function thoughtOf(content) {
    const { segments, length, field } = content.thought;
    if (!content.answer) return [make("p", { class: "quiet", text: "No answer, so no thought." })];
    if (!length) return [make("p", { class: "quiet", text: "The answer has no thought." })];
    const shown = make("div", { class: "running" }, ...segments.map(segmentOf));
    const count = segments.reduce((sum, s) => sum + (typeof s === "string" ? s : s[0]).length, 0);
    if (count < length) shown.append(cutText({ text: "", length, field }, hooks.full));
    return [shown];
  }

  function segmentOf(segment) {
    if (typeof segment === "string") return segment;
    const [text, kind, target] = segment;
    if (kind === "code") return make("code", { text });
    const look = { failed: "bad", added: "new", removed: "gone" }[at.states[target]] || "";
    const act = kind === "node" ? () => select(target) : () => tools.toggle(target);
    return make("button", {
      type: "button",
      class: kind === "node" ? `ref ${look}` : "tool",
      "data-node": kind === "node" ? target : null,
      title: kind === "node" ? `Node ${target}` : `Tool ${target}`,
      tabindex: "-1",
      onclick: act,
      onmousedown: (event) => event.preventDefault(),
      text,
    });
  }

  function seenOf({ rows, total }) {
    const bad = rows.filter((row) => row.state !== "ok").length;
    const calls = total === 1 ? "1 call" : `${total} calls`;
    return bad ? `${calls}, ${bad} not ok` : calls;
  }

  /* a tool's name may go on in the next line behind an underscore, rather than anywhere */
  function breakable(name) {
    return name.split(/(?<=_)/).flatMap((part, at) => (at ? [make("wbr"), part] : [part]));
  }

  function observationsOf({ rows, total }) {
    if (!rows.length)
      return make("p", { class: "quiet pad", text: "No call was made in this round." });
    const head = make(
      "tr",
      {},
      ...["Node", "Tool", "Result", "State"].map((text) => make("th", { scope: "col", text })),
    );
    const body = rows.map((row) =>
      make(
        "tr",
        {
          class: row.state === "ok" ? "" : "err",
          "data-node": row.node,
          onclick: () => row.node && select(row.node),
        },
        make(
          "td",
          {},
          row.node
            ? make("button", {
                type: "button",
                class: "plain",
                text: row.node,
                "aria-label": `Select node ${row.node}`,
              })
            : make("span", {
                class: "quiet",
                text: "–",
                title: "No node of the plan makes this call",
              }),
        ),
        make("td", { title: shortOf(row.arguments) }, ...breakable(row.tool)),
        make("td", { class: "mono" }, cutText(row.result || "(nothing)", hooks.full)),
        make(
          "td",
          { class: "state" },
          make("b", { text: STATE_SIGNS[row.state] || "" }),
          ` ${row.state}`,
        ),
      ),
    );
    const rest =
      total > rows.length
        ? make("p", { class: "quiet pad", text: `and ${total - rows.length} more calls` })
        : null;
    return make(
      "div",
      {},
      make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)),
      rest,
    );
  }

  /* ---- the selected node ---- */

  function sides(id) {
    const find = (list) => (list || []).find((node) => node.id === id) || null;
    const { before, after } = at.content.nodes;
    return { before: find(before), after: find(after) };
  }

  function select(id, quiet) {
    at.node = id;
    const found = id === null ? {} : sides(id);
    const node = found.after || found.before || null;
    if (!node) at.details = false;
    for (const plan of Object.values(at.plans)) plan.select(id);
    const reached = node ? reachOf(id, found.before ? "before" : "after") : [];
    const failed = node && at.states[id] === "failed";
    if (at.plans.before) at.plans.before.impact(failed ? reached : null, id);
    parts.strip.replaceChildren(...(node ? stripOf(id, node, found, reached) : idleStrip(id)));
    showDetails(id, found, reached);
    for (const marked of parts.thought.querySelectorAll(".ref")) {
      marked.classList.toggle("cur", id !== null && marked.dataset.node === id);
    }
    for (const row of parts.observations.querySelectorAll("tr[data-node]")) {
      row.classList.toggle("cur", id !== null && row.dataset.node === id);
    }
    if (node && at.content.tools.rows.some((tool) => tool.name === node.name)) {
      tools.pick(node.name);
      if (!quiet) reveal(parts.observations.querySelector("tr.cur"));
    }
  }

  function reveal(row) {
    if (row) row.scrollIntoView({ block: "nearest" });
  }

  function reachOf(id, side) {
    const nodes = at.content.nodes[side];
    const followers = new Map();
    for (const node of nodes) {
      for (const need of node.needs) {
        if (!followers.has(need)) followers.set(need, []);
        followers.get(need).push(node.id);
      }
    }
    const found = new Set();
    const waiting = [id];
    while (waiting.length) {
      for (const next of followers.get(waiting.pop()) || []) {
        if (!found.has(next)) {
          found.add(next);
          waiting.push(next);
        }
      }
    }
    found.delete(id);
    return nodes.filter((node) => found.has(node.id)).map((node) => node.id);
  }

  function idsInWords(ids) {
    if (!ids.length) return "nothing";
    const rest = ids.length - NAMED_IDS;
    return ids.slice(0, NAMED_IDS).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  }

  function idleStrip(id) {
    const words =
      id === null
        ? "Click a node to see its call, what it needs and what it reaches"
        : `Node ${id} is in neither plan`;
    return [make("span", { class: "quiet", text: words })];
  }

  function stripOf(id, node, found, reached) {
    const call = node.parameters
      .map(([name, value]) => (name ? `${name}=${shortOf(value)}` : shortOf(value)))
      .join(" ");
    const only = !found.before ? "added" : !found.after && at.content.answer ? "removed" : "";
    const named = node.name && node.name !== id ? `${id} ${node.name}` : id;
    return [
      make("b", { class: "who", text: `Node ${named}` }),
      only ? make("span", { class: "quiet", text: only }) : null,
      make("code", { text: call.slice(0, 300) }),
      make("span", {}, "needs ", make("b", { text: idsInWords(node.needs) })),
      make("span", {}, "reaches ", make("b", { text: idsInWords(reached) })),
      make("span", { class: "gap" }),
      make("button", {
        type: "button",
        class: "plain link",
        "aria-expanded": String(at.details),
        text: at.details ? "less" : "details",
        onclick: () => {
          at.details = !at.details;
          select(id, true);
        },
        onmousedown: (event) => event.preventDefault(),
      }),
      make("span", { class: "opt" }, key("Esc")),
    ].filter(Boolean);
  }

  function showDetails(id, found, reached) {
    parts.details.hidden = !at.details;
    if (!at.details) return parts.details.replaceChildren();
    const rows = [];
    const line = (name, value) => rows.push(make("dt", { text: name }), make("dd", {}, value));
    for (const side of ["before", "after"]) {
      const node = found[side];
      if (!node) continue;
      const same =
        side === "after" &&
        found.before &&
        JSON.stringify({ ...found.before, done: 0 }) ===
          JSON.stringify({ ...node, done: 0 }).replaceAll('"after:', '"before:');
      line(
        side === "before" ? "Before" : "After",
        same ? `the same call${node.done ? ", done" : ", pending"}` : callOf(node),
      );
      if (!same && node.description) line("", cutText(node.description, hooks.full, "about"));
    }
    line("Reaches", idsInWords(reached));
    at.content.observations.rows
      .filter((row) => row.node === id)
      .forEach((row) => {
        line(
          "Was called with",
          make("code", {}, cutText(row.arguments || "no arguments", hooks.full)),
        );
        line(
          `Result, ${row.state}`,
          make("code", {}, cutText(row.result || "(nothing)", hooks.full)),
        );
      });
    return parts.details.replaceChildren(make("dl", {}, ...rows));
  }

  function callOf(node) {
    const values = node.parameters.flatMap(([name, value]) => [
      make("div", {}, make("code", {}, name ? `${name} = ` : "", cutText(value, hooks.full))),
    ]);
    return make(
      "div",
      {},
      make("b", { text: node.name || "(no tool named)" }),
      ` ${node.done ? "done" : "pending"}, needs ${idsInWords(node.needs)}`,
      ...values,
    );
  }

  function toggleQuery() {
    at.wide = !at.wide;
    parts.query.setAttribute("aria-expanded", String(at.wide));
    root.querySelector(".query").classList.toggle("wide", at.wide);
  }

  const tools = makeTools(hooks.full);
  const root = build();
  return {
    root,
    show,
    select,
    fit,
    toggleQuery,
    selected: () => at.node,
    destroy: () => Object.values(at.plans).forEach((plan) => plan.destroy()),
  };
}
