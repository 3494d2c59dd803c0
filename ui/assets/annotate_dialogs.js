/* The list of all keys, a long text, and what stands where no item is open. */

const CHUNK = 4000; // characters of a long text that are laid out as one block

const KEY_LINES = [
  ["1 5 0", "score 1, 0.5 or 0 and move on"],
  ["↑ ↓", "move between sub-dimensions"],
  ["Backspace", "clear the score"],
  ["[ ] or ← →", "previous and next item"],
  ["U", "undo"],
  ["N", "note on the sub-dimension, Shift N on the sample"],
  ["K", "skip: the item comes back at the end"],
  ["F", "flag for whoever runs the batch"],
  ["Q", "open and close the query"],
  ["Enter", "submit, then the next item"],
  ["S", "send again what waits"],
  ["Esc", "clear the selection, close"],
  ["?", "this list"],
];

function makeHelp() {
  const close = () => {
    root.hidden = true;
  };
  const keys = (text) => text.split(" ").map((name) => (name === "or" ? " or " : key(name)));
  const list = KEY_LINES.flatMap(([names, what]) => [
    make("dt", {}, ...keys(names)),
    make("dd", { text: what }),
  ]);
  const head = make(
    "div",
    { class: "head" },
    make("b", { text: "Keys" }),
    make("span", { class: "gap" }),
    button("Close", "Esc", close),
  );
  const foot = make("p", {
    class: "quiet",
    text: "Keys rest while a text field has the focus. A hollow dot is on its way; a tick is on disk.",
  });
  const root = make(
    "div",
    {
      class: "over",
      hidden: true,
      role: "dialog",
      "aria-modal": "true",
      "aria-label": "Keys",
      onclick: (event) => event.target === root && close(),
    },
    make("div", { class: "sheet small" }, head, make("dl", {}, ...list), foot),
  );
  return root;
}

/* A long text in a dialog of its own, in blocks that the browser lays out only when seen. */
function makeFullText(close) {
  const body = make("div", { class: "full-body" });
  const title = make("b", {});
  const root = make(
    "div",
    {
      class: "over",
      hidden: true,
      role: "dialog",
      "aria-modal": "true",
      "aria-label": "Whole text",
    },
    make(
      "div",
      { class: "sheet" },
      make(
        "div",
        { class: "head" },
        title,
        make("span", { class: "gap" }),
        button("Close", "Esc", close),
      ),
      body,
    ),
  );
  return {
    root,
    open: () => !root.hidden,
    close: () => {
      root.hidden = true;
      body.replaceChildren();
    },
    wait: () => {
      title.textContent = "Loading the whole text";
      root.hidden = false;
    },
    show: (text) => {
      title.textContent = `${text.length.toLocaleString("en")} characters`;
      const blocks = [];
      for (let from = 0; from < text.length;) {
        let to = Math.min(text.length, from + CHUNK);
        const line = text.lastIndexOf("\n", to);
        if (to < text.length && line > from + CHUNK / 2) to = line + 1;
        blocks.push(make("div", { class: "block", text: text.slice(from, to) }));
        from = to;
      }
      body.replaceChildren(...blocks);
      root.hidden = false;
    },
  };
}

/* Why no item is open and the ways on: links, and things to ask the server for. */
function emptyWords(found, ask) {
  const way = (one) =>
    one.href
      ? make("a", {
          class: `btn ${one.main ? "p" : ""}`,
          href: one.href,
          target: "_self",
          text: one.text,
        })
      : button(one.text, "", () => ask(one.act), { cls: one.main ? "p" : "" });
  return [
    make("h2", { text: found.title }),
    ...found.lines.map((text) => make("p", { text })),
    make("div", { class: "ways" }, ...found.ways.map(way)),
  ];
}
