/* The listed tools, and the schema of the one that is chosen. */

function makeTools(more) {
  const at = { rows: [], total: 0, chosen: null };
  const root = make("div", { class: "tools" });

  function show(tools) {
    const same = tools.rows === at.rows;
    Object.assign(at, tools, same ? {} : { chosen: null });
    draw();
  }

  function draw() {
    const shown = at.rows.find((tool) => tool.name === at.chosen) || null;
    const said = shown ? `${at.total} listed, ${shown.name} shown` : `${at.total} listed`;
    root.replaceChildren(
      make("b", { text: "Tools" }),
      " ",
      make("span", { class: "quiet", text: said }),
      make("ul", {}, ...at.rows.map((tool) => make("li", {}, chip(tool, tool === shown)))),
      ...(shown ? schemaOf(shown) : []),
    );
  }

  function chip(tool, on) {
    return make("button", {
      type: "button",
      class: on ? "cur" : "",
      "aria-pressed": String(on),
      text: tool.name,
      onclick: () => toggle(tool.name),
      onmousedown: (event) => event.preventDefault(),
    });
  }

  function schemaOf(tool) {
    const sign = tool.parameters
      .map((p) => `${p.name}${p.required ? "" : "?"}${p.type ? `: ${p.type}` : ""}`)
      .join(", ");
    const told = tool.parameters.filter((p) => shortOf(p.description));
    const lines = told.flatMap((p) => [
      make("dt", { class: "mono", text: p.name + (p.required ? "" : " (optional)") }),
      make("dd", {}, cutText(p.description, more)),
    ]);
    const about = shortOf(tool.description)
      ? make("p", { class: "about" }, cutText(tool.description, more))
      : null;
    return [
      make("p", { class: "mono sign", text: `${tool.name}(${sign})` }),
      about,
      lines.length ? make("dl", {}, ...lines) : null,
    ].filter(Boolean);
  }

  function pick(name) {
    if (at.chosen === name) return;
    at.chosen = name;
    draw();
  }

  function toggle(name) {
    pick(at.chosen === name ? null : name);
  }

  return { root, show, pick, toggle };
}
