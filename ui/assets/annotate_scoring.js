/* The right side: the sub-dimensions, note, acts and progress. */

const VALUES = [1, 0.5, 0];
const VALUE_KEYS = ["1", "5", "0"];

function makeScoring(rubric, hooks) {
  const rows = new Map();
  const heads = new Map();
  const parts = {};
  const at = { focus: null, view: null, forSample: false, editing: null };

  /* ---- frame, built once ---- */

  function still(event) {
    event.preventDefault(); // a click must not take the keys away from the page
  }

  function choice(dimension, value, where) {
    const level = VALUES.indexOf(value);
    const anchor = dimension.anchors[level];
    const inside =
      where === "anchor"
        ? [
            make("span", { class: "v", text: String(value) }),
            make("span", { text: anchor }),
            key(VALUE_KEYS[level]),
          ]
        : [String(value)];
    return make(
      "button",
      {
        type: "button",
        role: "radio",
        "aria-checked": "false",
        "aria-label":
          where === "anchor" ? `${dimension.id} ${value}: ${anchor}` : `${dimension.id} ${value}`,
        title: where === "chip" ? anchor : null,
        tabindex: "-1",
        "data-value": String(value),
        onmousedown: still,
        onclick: (event) => {
          event.stopPropagation();
          hooks.score(dimension.id, value);
        },
      },
      ...inside,
    );
  }

  function judgedRow(dimension) {
    const label = `${dimension.id} ${dimension.name}: ${dimension.question}`;
    const row = {
      dimension,
      name: make("span", { class: "nm" }, make("span", { class: "short", text: dimension.short })),
      mark: make("span", { class: "nt", hidden: true, title: "has a note" }, icon("note")),
      refs: make("span", { class: "refs" }),
      question: make("span", { class: "question", text: dimension.question }),
      chips: make(
        "span",
        { class: "ch", role: "radiogroup", "aria-label": label },
        ...VALUES.map((v) => choice(dimension, v, "chip")),
      ),
      anchors: make(
        "div",
        { class: "an", role: "radiogroup", "aria-label": label },
        ...VALUES.map((v) => choice(dimension, v, "anchor")),
      ),
      tick: make("span", { class: "tk" }),
      told: make("div", { class: "told" }),
      trouble: make("div", { class: "trouble", hidden: true }),
    };
    row.name.append(row.mark, row.refs);
    row.root = make(
      "div",
      {
        class: "sr",
        "data-dimension": dimension.id,
        title: dimension.name,
        onclick: () => hooks.focus(dimension.id),
      },
      make(
        "div",
        { class: "line" },
        make("b", { class: "id", text: dimension.id }),
        row.name,
        row.question,
        row.chips,
        row.tick,
      ),
      row.anchors,
      row.told,
      row.trouble,
    );
    return row;
  }

  function computedRow(dimension) {
    const row = {
      dimension,
      value: make("span", { class: "cv" }),
      why: make("small", {}),
      tick: make("span", { class: "tk", text: "=", title: "computed" }),
    };
    row.root = make(
      "div",
      { class: "sr comp", "data-dimension": dimension.id, title: dimension.name },
      make(
        "div",
        { class: "line" },
        make("b", { class: "id", text: dimension.id }),
        make(
          "span",
          { class: "nm" },
          make("span", { class: "short", text: dimension.short }),
          row.why,
        ),
        row.value,
        row.tick,
      ),
    );
    return row;
  }

  function build() {
    const list = make("div", { class: "list" });
    for (const group of rubric.groups) {
      const count = make("span", { class: "quiet" });
      heads.set(group.id, count);
      list.append(
        make(
          "div",
          { class: "gh", title: group.question },
          make("b", { text: group.id }),
          make("span", { text: group.name }),
          make("span", { class: "gap" }),
          count,
        ),
      );
      for (const dimension of rubric.dimensions.filter((d) => d.group === group.id)) {
        const row = dimension.judged ? judgedRow(dimension) : computedRow(dimension);
        rows.set(dimension.id, row);
        list.append(row.root);
      }
    }
    parts.list = list;
    parts.target = make("button", {
      type: "button",
      class: "target",
      onmousedown: still,
      onclick: () => aim(!at.forSample),
    });
    parts.note = make("textarea", {
      class: "note",
      rows: "1",
      onfocus: () => {
        at.editing = { item: at.view.item, dimension: at.forSample ? null : at.focus };
      },
      onblur: saveNote,
      onkeydown: noteKey,
    });
    parts.acts = make("div", { class: "acts" });
    parts.mine = bar();
    parts.batch = bar();
    parts.warning = make("div", { class: "warning", role: "status", hidden: true });
    return make(
      "section",
      { class: "card panel", "aria-label": "Scores" },
      list,
      make(
        "div",
        { class: "foot" },
        make("div", { class: "noting" }, parts.target, parts.note),
        parts.acts,
        parts.warning,
        make("div", { class: "pr" }, parts.mine.root, parts.batch.root),
      ),
    );
  }

  function bar() {
    const left = make("span", {});
    const right = make("span", { class: "quiet" });
    const fill = make("i", {});
    const track = make(
      "div",
      { class: "bar", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" },
      fill,
    );
    return {
      root: make("div", {}, make("div", { class: "between" }, left, right), track),
      left,
      right,
      fill,
      track,
    };
  }

  /* ---- notes ---- */

  function noteOf() {
    if (!at.view) return "";
    if (at.forSample) return at.view.note || "";
    const row = at.focus && at.view.rows[at.focus];
    return (row && row.note) || "";
  }

  function aim(forSample) {
    if (at.editing) saveNote();
    at.forSample = forSample || !at.focus;
    showNote();
  }

  function showNote() {
    if (at.editing) return;
    const on = at.forSample ? "the whole sample (N)" : `${at.focus} (N)`;
    parts.target.textContent = at.forSample ? "sample" : at.focus;
    parts.target.setAttribute(
      "aria-label",
      at.forSample
        ? `Note is on the whole sample; change to ${at.focus}`
        : `Note is on ${at.focus}; change to the whole sample`,
    );
    parts.target.title = "Note on the sub-dimension or on the whole sample";
    parts.note.placeholder = `Note on ${on}`;
    parts.note.setAttribute("aria-label", `Note on ${on}`);
    parts.note.value = noteOf();
    parts.note.disabled = !at.view || !at.view.can_score;
  }

  function saveNote() {
    const editing = at.editing;
    at.editing = null;
    if (!editing) return;
    const text = parts.note.value.trim();
    const before =
      editing.item === at.view.item
        ? (editing.dimension ? (at.view.rows[editing.dimension] || {}).note : at.view.note) || ""
        : null;
    if (text !== before) hooks.note(editing.item, editing.dimension, text);
    showNote();
  }

  function noteKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      parts.note.blur();
    } else if (event.key === "Escape") {
      parts.note.value = noteOf();
      at.editing = null;
      parts.note.blur();
      showNote();
      event.stopPropagation();
    }
  }

  /* ---- one item ---- */

  function asked() {
    return rubric.dimensions
      .filter((d) => d.judged && at.view.dimensions.includes(d.id))
      .map((d) => d.id);
  }

  function scored() {
    return asked().filter((id) => at.view.rows[id] && at.view.rows[id].value !== null);
  }

  function show(view, content, late) {
    at.view = view;
    for (const row of rows.values()) {
      if (row.dimension.judged) showJudged(row, view, content, late);
      else showComputed(row, view, content);
    }
    const have = new Set(scored());
    for (const [group, count] of heads) {
      const ids = asked().filter((id) => id.startsWith(group));
      count.textContent = `${ids.filter((id) => have.has(id)).length} of ${ids.length}`;
    }
    showNote();
    showActs(view, have.size, late);
  }

  function showJudged(row, view, content, late) {
    const id = row.dimension.id;
    const score = view.rows[id] || { value: null, note: "", revision: 0 };
    const off = !view.dimensions.includes(id);
    const proposal = score.value === null && content.proposals[id];
    const trouble =
      view.troubles[id] ||
      (late && score.waits ? "Not saved yet; it is sent again by itself (S sends it now)" : "");
    row.root.classList.toggle("off", off);
    row.root.classList.toggle("bad", Boolean(trouble));
    for (const set of [row.chips, row.anchors]) {
      set.querySelectorAll("button").forEach((node, level) => {
        const on = score.value === VALUES[level];
        node.classList.toggle("on", on);
        node.classList.toggle("may", Boolean(proposal) && proposal[0] === VALUES[level]);
        node.setAttribute("aria-checked", String(on));
        node.disabled = off || !view.can_score;
      });
    }
    row.tick.textContent = score.waits ? "○" : score.value !== null ? "✓" : "";
    row.tick.title = score.waits
      ? "on its way"
      : score.value !== null
        ? `saved ${timeOf(score.at)}`
        : "";
    row.tick.classList.toggle("waits", Boolean(score.waits));
    row.mark.hidden = !score.note;
    row.mark.title = score.note ? `Note: ${score.note.slice(0, 300)}` : "";
    showOthers(row, view);
    row.trouble.hidden = !trouble && !proposal;
    row.trouble.classList.toggle("hint", !trouble);
    row.trouble.replaceChildren(
      ...(trouble
        ? [
            trouble,
            view.troubles[id]
              ? make("button", {
                  type: "button",
                  class: "plain link",
                  text: "Reload",
                  onmousedown: still,
                  onclick: () => hooks.reload(id),
                })
              : "",
          ]
        : proposal
          ? [`Proposed ${proposal[0]}: ${proposal[1]}. Confirm it with a key.`]
          : []),
    );
  }

  function showOthers(row, view) {
    const id = row.dimension.id;
    const found = ((view.revealed && view.revealed.scorers) || []).filter(
      (scorer) => scorer.scores[id],
    );
    const said = found.map((scorer) => `${scorer.name} ${written(scorer.scores[id][0])}`);
    row.refs.textContent = said.length ? said.join(" · ") : "";
    row.refs.title = said.join("\n");
    row.told.replaceChildren(
      ...found.map((scorer) =>
        make(
          "p",
          {},
          make("b", { text: `${scorer.name} ${written(scorer.scores[id][0])}` }),
          scorer.scores[id][1] ? ` ${scorer.scores[id][1]}` : "",
        ),
      ),
    );
  }

  function showComputed(row, view, content) {
    const found =
      row.dimension.id === "S5" ? content.s5 : row.dimension.id === "E5" ? view.e5 : null;
    row.root.classList.toggle("none", !found || found.value === null);
    row.value.textContent =
      found && found.value !== null ? String(Math.round(found.value * 100) / 100) : "–";
    row.why.textContent = found ? found.reason : row.dimension.id === "E5" ? "no run here" : "";
    row.why.title = row.why.textContent;
  }

  function showActs(view, done, late) {
    const total = asked().length;
    const submitted = view.state === "submitted";
    const made = [button("Undo", "U", hooks.undo)];
    if (submitted) {
      if (view.shown.can_reveal)
        made.push(
          button("Reveal", "", hooks.reveal, {
            aria: "Reveal judge, agent, tags and others' scores",
          }),
        );
      made.push(button("Next item", "↵", () => hooks.go(1), { cls: "p" }));
    } else {
      made.push(
        button("Skip", "K", hooks.skip),
        button("Flag", "F", hooks.flag, { cls: view.state === "flagged" ? "set" : "" }),
      );
      const waits = done < total || late;
      const label = late ? "Submit waits" : done < total ? `Submit ${done} of ${total}` : "Submit";
      const submit = button(label, "", hooks.submit, {
        cls: `p ${waits ? "wait" : ""}`,
        aria: `${label}, Enter`,
      });
      submit.append(key("↵"));
      if (waits) submit.setAttribute("aria-disabled", "true");
      made.push(submit);
    }
    parts.acts.hidden = !view.can_score && !submitted;
    parts.acts.replaceChildren(...made);
  }

  function showProgress(progress, seconds) {
    parts.mine.root.parentNode.hidden = !progress;
    if (!progress) return;
    fillBar(
      parts.mine,
      "Mine",
      progress.mine_done,
      progress.mine_total,
      `this item ${clock(seconds)}`,
    );
    const pace = progress.median_seconds
      ? `median ${clock(progress.median_seconds)}`
      : progress.pace_per_hour
        ? `${Math.round(progress.pace_per_hour)} an hour`
        : "";
    fillBar(parts.batch, "Batch", progress.batch_done, progress.batch_total, pace);
    parts.batch.right.title = progress.pace_per_hour
      ? `${progress.pace_per_hour.toFixed(1)} items an hour; idle time is left out`
      : "";
    parts.warning.hidden = !progress.warning;
    parts.warning.textContent = progress.warning || "";
  }

  function fillBar(found, name, done, total, right) {
    const share = total ? Math.min(100, (100 * done) / total) : 0;
    found.left.textContent = `${name} ${done} of ${total}`;
    found.right.textContent = right;
    found.fill.style.width = `${share}%`;
    found.track.setAttribute("aria-label", `${name}: ${done} of ${total}`);
    found.track.setAttribute("aria-valuenow", String(Math.round(share)));
  }

  /* ---- focus ---- */

  function focus(id) {
    if (at.editing) saveNote();
    at.focus = id;
    at.forSample = false;
    for (const [name, row] of rows) {
      const on = name === id;
      row.root.classList.toggle("fx", on);
      if (!row.dimension.judged) continue;
      row.anchors
        .querySelectorAll("button")
        .forEach((node) => node.setAttribute("tabindex", on ? "0" : "-1"));
      if (on) row.root.setAttribute("aria-current", "true");
      else row.root.removeAttribute("aria-current");
    }
    const row = rows.get(id);
    if (row) keepInView(row.root);
    showNote();
  }

  function keepInView(node) {
    const list = parts.list;
    const top = node.offsetTop - list.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top - 6;
    else if (top + node.offsetHeight > list.scrollTop + list.clientHeight)
      list.scrollTop = top + node.offsetHeight - list.clientHeight + 6;
  }

  const root = build();
  return {
    root,
    show,
    showProgress,
    focus,
    focused: () => at.focus,
    asked,
    scored,
    writeNote: (forSample) => {
      aim(forSample);
      parts.note.focus();
    },
    editing: () => at.editing !== null,
  };
}
