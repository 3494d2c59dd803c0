/* The list of the Trajectories page: rows with their marks, sorting and paging. */

const COLUMNS = [
  ["Id"], ["Query"], ["Level", "level"], ["Errors"], ["Agent", "agent"], ["Rounds", "rounds"],
  ["SI", "si"], ["DR", "dr"], ["ES", "es"], ["S1 to E5"], ["Human, judge gap", "gap"],
];
const DIMENSIONS = ["S1", "S2", "S3", "S4", "S5", "D1", "D2", "D3", "D4", "D5", "E1", "E2", "E3", "E4", "E5"];

function makeList(card, { open, change }) {
  const head = make("tr");
  const body = make("tbody");
  const table = make("table", { class: "list" }, make("thead", {}, head), body);
  const wrap = make("div", { class: "listwrap" }, table);
  const foot = make("div", { class: "pg" });
  const empty = make("div", { class: "empty", hidden: true });
  card.append(wrap, empty, foot);
  let list = null;
  let current = "";

  body.addEventListener("keydown", (event) => {
    const rows = Array.from(body.querySelectorAll("tr"));
    const at = rows.indexOf(event.target.closest("tr"));
    if (at < 0) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") {
      event.preventDefault();
      open(rows[at].dataset.key);
    } else if (step && rows[at + step]) {
      event.preventDefault();
      rows.forEach((row) => { row.tabIndex = -1; });
      rows[at + step].tabIndex = 0;
      rows[at + step].focus();
    }
  });

  function heads(sort) {
    head.replaceChildren(...COLUMNS.map(([label, by]) => {
      const active = by && sort && sort.by === by;
      const cell = make("th", { scope: "col", class: label === "Rounds" ? "r" : null,
        "aria-sort": active ? (sort.down ? "descending" : "ascending") : null });
      if (!by) cell.textContent = label;
      else {
        cell.append(make("button", { type: "button", class: "sort",
          text: label + (active ? (sort.down ? " ↓" : " ↑") : ""),
          title: `Sort by ${label}`,
          onclick: () => change({ sort: !active ? [`${by}-down`] : sort.down ? [by] : null }) }));
      }
      return cell;
    }));
  }

  function row(item, index) {
    const errors = make("td", { class: "errs" });
    if (item.tags_hidden) errors.append(make("span", { class: "quiet", text: "hidden until revealed" }));
    item.errors.slice(0, 2).forEach((name) => errors.append(make("span", { class: "tg", text: name.replaceAll("_", " ") })));
    if (item.errors.length > 2) errors.append(make("span", { class: "quiet", text: `+${item.errors.length - 2}`, title: item.errors.slice(2).join(", ") }));
    const agent = item.hidden ? "" : item.agent || (item.replan ? "(no name)" : "no answer yet");
    const cells = [
      make("td", { class: "mono id", text: item.id, title: item.key }),
      make("td", { class: "qq", text: item.query || "(no query)", title: item.query }),
      make("td", { text: item.level || "–" }),
      errors,
      make("td", { class: item.replan ? "ag" : "ag quiet", text: agent, title: agent }),
      rounds(item),
      ...["si", "dr", "es"].map((name) => make("td", {}, chip(item, name))),
      make("td", {}, spark(item.marks)),
      make("td", { class: "gapc" }, gap(item.gap)),
    ];
    return make("tr", { tabindex: index ? "-1" : "0", "data-key": item.key, class: item.key === current ? "cur" : null,
      "aria-current": item.key === current ? "true" : null, onclick: () => open(item.key) }, cells);
  }

  function rounds(item) {
    const cell = make("td", { class: "r", title: item.run ? "rounds of the whole run, and how many suffice" : "round of this decision point, and how many rounds suffice" });
    if (item.rounds === null) cell.append("–");
    else cell.append(make("b", { text: item.rounds }), make("span", { class: "quiet", text: item.round_gt ? ` of ${item.round_gt}` : "" }));
    return cell;
  }

  return {
    show(next, sort, key) {
      if (next) list = next;
      current = key;
      heads(sort);
      if (!list) return;
      body.replaceChildren(...list.rows.map(row));
      wrap.hidden = !list.rows.length;
      empty.hidden = !!list.rows.length;
      empty.replaceChildren(...nothing());
      footer();
    },
    point(key) {
      current = key;
      body.querySelectorAll("tr").forEach((tr) => {
        tr.classList.toggle("cur", tr.dataset.key === key);
        if (tr.dataset.key === key) tr.setAttribute("aria-current", "true");
        else tr.removeAttribute("aria-current");
      });
    },
  };

  function nothing() {
    if (list.all) {
      return [make("p", { class: "b", text: "Nothing matches." }), make("p", { class: "quiet", text: "Take a filter back, or clear them all." })];
    }
    return [
      make("p", { class: "b", text: "There is nothing to browse yet." }),
      make("p", {}, "Bring your files on the ", make("a", { href: "dataset", text: "Dataset page" }), ", or with: pararecover import FILE"),
    ];
  }

  function footer() {
    const words = `${count(list.total)} of ${count(list.all)} items, ${list.size} a page`;
    foot.replaceChildren(make("span", { "aria-live": "polite", text: words }), make("span", { class: "quiet", text: `${list.ms} ms` }));
    if (list.left_out) {
      foot.append(make("span", { class: "quiet", text: `${count(list.left_out)} that you still score stay out of this filter`,
        title: "A filter or order by agent, error or score would tell what blind scoring hides." }));
    }
    foot.append(make("span", { class: "gap" }), ...pager(), make("button", { type: "button", class: "btn q", text: "Copy link", onclick: copy }));
  }

  function pager() {
    const go = (page) => () => change({ page: page > 1 ? [String(page)] : null });
    const { page, pages } = list;
    const wanted = [...new Set([1, page - 1, page, page + 1, pages])].filter((n) => n >= 1 && n <= pages).sort((a, b) => a - b);
    const arrow = (name, label, to) => make("button", { type: "button", class: "pgb", "aria-label": label, disabled: to < 1 || to > pages, onclick: go(to) }, icon(name));
    const parts = [arrow("left", "Previous page", page - 1)];
    wanted.forEach((n, at) => {
      if (at && n > wanted[at - 1] + 1) parts.push(make("span", { class: "quiet", text: "…" }));
      parts.push(make("button", { type: "button", class: n === page ? "pgb on" : "pgb", text: count(n), "aria-current": n === page ? "page" : null, onclick: go(n) }));
    });
    return [...parts, arrow("right", "Next page", page + 1)];
  }

  async function copy(event) {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(window.location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copy it from the address bar";
    }
    setTimeout(() => { button.textContent = "Copy link"; }, 2000);
  }
}

function chip(item, name) {
  const value = name in item.people ? item.people[name] : item.judges[name];
  if (value === undefined) return make("span", { class: "quiet", text: "–" });
  const by = name in item.people ? "people" : "judges";
  const shown = Math.round(100 * value);
  const bar = make("i");
  bar.style.width = `${100 * value}%`;
  return make("span", { class: `ck ${by}`, title: `${name.toUpperCase()} ${shown}, by ${by}` }, bar, make("b", { text: shown }));
}

/* Fifteen bars in three groups; height says the score, a short tick is 0, a dot is none. */
function spark(marks) {
  const said = marks.map((value, at) => `${DIMENSIONS[at]} ${value === null ? "none" : Number(value.toFixed(2))}`).join(", ");
  const frame = vector("svg", { class: "spark", width: 94, height: 18, viewBox: "0 0 94 18", role: "img", "aria-label": said });
  if (marks.every((value) => value === null)) {
    const none = make("span", { class: "quiet", text: "–" });
    return none;
  }
  marks.forEach((value, at) => {
    const x = at * 6 + Math.floor(at / 5) * 2;
    const high = value === null ? 0 : 2 + 14 * value;
    if (value === null) frame.append(vector("circle", { cx: x + 2.25, cy: 16, r: 0.9, class: "sn" }));
    else frame.append(vector("rect", { x, y: 17 - high, width: 4.5, height: high, class: value ? "sk" : "sz" }));
  });
  const title = vector("title", {});
  title.textContent = said;
  frame.append(title);
  return frame;
}

function gap(value) {
  if (value === null || value === undefined) return make("span", { class: "quiet", text: "–" });
  const frame = vector("svg", { width: 56, height: 14, viewBox: "0 0 56 14", "aria-hidden": "true" });
  frame.append(vector("path", { d: "M4 7h48", class: "ax" }), vector("circle", { cx: 4 + 44 * value, cy: 7, r: 4, class: "gd" }));
  return make("span", {}, frame, value.toFixed(value % 0.5 ? 2 : 1));
}
