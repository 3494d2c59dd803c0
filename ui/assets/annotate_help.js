/* The list of all keys. */

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
