/* The filter bar of the Trajectories page. The state is the link's own query, field by field. */

const SHOW = {
  source: (name) => name,
  error: (name) => name.replaceAll("_", " "),
  level: (name) => (name === "0" ? "unknown" : name),
  agent: (name) => name || "(no name)",
};

function makeFilters(bar, change) {
  let open = null;
  let data = { facets: null, query: {} };

  const search = make("input", {
    type: "search", class: "search", placeholder: "Search query, thought, tool, id",
    "aria-label": "Search query, thought, tool names or id", maxlength: "500",
  });
  let timer = 0;
  const say = () => {
    clearTimeout(timer);
    if ((data.query.q || [""])[0] !== search.value.trim()) change({ q: search.value.trim() ? [search.value.trim()] : null });
  };
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(say, 300);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") say();
  });

  const fields = [
    many("level", "Level", "levels"),
    many("error", "Error", "errors"),
    many("source", "Source", "sources"),
    many("agent", "Agent", "agents"),
    one("s5", "S5", [["", "any"], ["1", "1, parses"], ["0", "0, does not"]], "s5"),
    one("answer", "Answer", [["", "any"], ["yes", "there"], ["no", "none yet"]], "answer"),
    score(),
    one("gap", "Gap", [["", "any"], ["0.25", "0.25 or more"], ["0.5", "0.5 or more"], ["1", "1"]]),
  ];
  const clear = make("button", { type: "button", class: "btn q", onclick: () => {
    search.value = "";
    change(Object.fromEntries(["q", "level", "error", "source", "agent", "s5", "answer", "score", "gap"].map((name) => [name, null])));
  } });
  bar.append(search, ...fields.map((field) => field.box), clear);

  function close(focus) {
    if (!open) return;
    const was = open;
    open = null;
    was.panel.hidden = true;
    was.button.setAttribute("aria-expanded", "false");
    if (focus) was.button.focus();
  }

  function field(label, fill) {
    const value = make("span", { class: "val" });
    const button = make("button", { type: "button", class: "fld", "aria-expanded": "false",
      "aria-haspopup": "true" }, make("span", { class: "lab", text: label }), value, icon("down"));
    const panel = make("div", { class: "pop", hidden: true, role: "group", "aria-label": label });
    const box = make("div", { class: "fldbox" }, button, panel);
    const made = { box, button, panel, value, fill };
    button.addEventListener("click", () => {
      const again = open === made;
      close(false);
      if (again) return;
      fill(panel);
      panel.hidden = false;
      button.setAttribute("aria-expanded", "true");
      open = made;
      panel.style.right = box.offsetLeft + panel.offsetWidth > bar.clientWidth ? "0" : "";
      const first = panel.querySelector("input, select");
      if (first) first.focus();
    });
    return made;
  }

  function many(name, label, facet) {
    const made = field(label, (panel) => {
      const chosen = new Set(data.query[name] || []);
      const counts = (data.facets && data.facets[facet]) || {};
      const names = Array.from(new Set([...Object.keys(counts), ...chosen]));
      panel.replaceChildren(...names.map((value) => {
        const input = make("input", { type: "checkbox", checked: chosen.has(value) });
        input.addEventListener("change", () => {
          if (input.checked) chosen.add(value);
          else chosen.delete(value);
          change({ [name]: chosen.size ? Array.from(chosen) : null });
        });
        return make("label", {}, input, make("span", { text: (SHOW[name] || String)(value) }),
          make("span", { class: "n", text: count(counts[value] || 0) }));
      }));
      if (!names.length) panel.replaceChildren(make("p", { class: "quiet", text: "Nothing to choose from." }));
    });
    made.refresh = () => {
      const chosen = data.query[name] || [];
      const all = Object.keys((data.facets && data.facets[facet]) || {}).length;
      const shown = chosen.map(SHOW[name] || String);
      const words = chosen.length > 1 && name !== "level"
        ? `${chosen.length} of ${Math.max(all, chosen.length)}` : shown.join(" and ") || "any";
      set(made, words, chosen.length);
    };
    return made;
  }

  function one(name, label, choices, facet) {
    const made = field(label, (panel) => {
      const chosen = (data.query[name] || [""])[0];
      const counts = (facet && data.facets && data.facets[facet]) || {};
      panel.replaceChildren(...choices.map(([value, words]) => {
        const input = make("input", { type: "radio", name: `f-${name}`, checked: value === chosen });
        input.addEventListener("change", () => change({ [name]: value ? [value] : null }));
        const number = facet && value ? count(counts[value] || 0) : "";
        return make("label", {}, input, make("span", { text: words }), make("span", { class: "n", text: number }));
      }));
    });
    made.refresh = () => {
      const chosen = (data.query[name] || [""])[0];
      const found = choices.find(([value]) => value === chosen);
      set(made, chosen && name === "s5" ? chosen : found ? found[1] : chosen, chosen ? 1 : 0);
    };
    return made;
  }

  function score() {
    const names = { total: "mean of SI, DR, ES", si: "SI", dr: "DR", es: "ES" };
    const read = () => {
      const found = /^(\w+)\.(\w+)\.([\d.]+)-([\d.]+)$/.exec((data.query.score || [""])[0]);
      return found ? { measure: found[1], by: found[2], low: found[3], high: found[4] }
        : { measure: "total", by: "people", low: "0", high: "100" };
    };
    const made = field("Score", (panel) => {
      const now = read();
      const choose = (label, key, choices) => {
        const select = make("select", { "aria-label": label },
          Object.entries(choices).map(([value, text]) => make("option", { value, text, selected: value === now[key] })));
        select.addEventListener("change", () => { now[key] = select.value; tell(); });
        return select;
      };
      const number = (label, key) => {
        const input = make("input", { type: "number", min: "0", max: "100", step: "5", value: now[key], "aria-label": label });
        input.addEventListener("change", () => {
          const value = Math.min(100, Math.max(0, Number(input.value) || 0));
          input.value = now[key] = String(value);
          tell();
        });
        return input;
      };
      const tell = () => {
        const all = Number(now.low) <= 0 && Number(now.high) >= 100;
        change({ score: all ? null : [`${now.measure}.${now.by}.${now.low}-${now.high}`] });
      };
      panel.replaceChildren(make("div", { class: "range" },
        choose("Which score", "measure", names),
        choose("Whose score", "by", { people: "by people", judges: "by judges" }),
        make("div", {}, number("From", "low"), " to ", number("To", "high"))));
    });
    made.refresh = () => {
      const now = read();
      const asked = (data.query.score || []).length;
      const which = now.measure === "total" ? "" : `${now.measure.toUpperCase()} `;
      set(made, `${which}${now.low} to ${now.high}`, asked);
    };
    return made;
  }

  function set(made, words, active) {
    made.value.textContent = words;
    made.button.classList.toggle("on", active > 0);
  }

  const outside = (event) => {
    if (open && !event.composedPath().includes(open.box)) close(false);
  };
  bar.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open) {
      event.stopPropagation();
      close(true);
    }
  });
  document.addEventListener("pointerdown", outside);

  return {
    show(query, facets) {
      data = { query, facets: facets || data.facets };
      if (search !== search.getRootNode().activeElement) search.value = (query.q || [""])[0];
      fields.forEach((made) => made.refresh());
      const active = fields.filter((made) => made.button.classList.contains("on")).length + (query.q ? 1 : 0);
      clear.textContent = `Clear ${active}`;
      clear.hidden = !active;
      if (open && facets) open.panel.querySelectorAll("label").length && refreshCounts(open);
    },
    destroy() {
      clearTimeout(timer);
      document.removeEventListener("pointerdown", outside);
    },
  };

  /* Counts move with the other fields while a panel is open; its focus stays where it is. */
  function refreshCounts(made) {
    const at = Array.from(made.panel.querySelectorAll("input, select")).indexOf(bar.getRootNode().activeElement);
    made.fill(made.panel);
    const inputs = made.panel.querySelectorAll("input, select");
    if (at >= 0 && inputs[at]) inputs[at].focus();
  }
}

function count(number) {
  return Number(number).toLocaleString("en-US");
}
