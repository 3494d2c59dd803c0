/* Keys of the page: which of them are ours, and when they rest. */

/* acts: key to what it does; dialog: {open(), close(), passes(name)} for what lies on top. */
function keyHandler(bench, acts, dialog) {
  function typing(node) {
    return node.matches("input, textarea, select, [contenteditable=''], [contenteditable='true']");
  }

  /* Whether a key belongs to what has the focus: a button's Enter, a menu's arrows, a dialog. */
  function belongs(node, name) {
    const outside = !bench.contains(node);
    if (outside && node.closest("[role=dialog], [role=menu], [role=listbox]")) return true;
    if (name.startsWith("Arrow")) {
      return outside && node.matches("[role=slider], [role=tab], [role=option]");
    }
    return name === "Enter" && node.matches("button, a, [role=button]");
  }

  return (event) => {
    if (!bench.isConnected) return; // the page was left; the clean-up comes a moment later
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const focused = event.composedPath()[0];
    if (focused instanceof Element && typing(focused)) return;
    if (event.key === "Escape" && dialog.open()) {
      dialog.close();
      return;
    }
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const found = Object.hasOwn(acts, name) ? acts[name] : null;
    if (!found || (dialog.open() && !dialog.passes(name))) return;
    if (focused instanceof Element && belongs(focused, name)) return;
    event.preventDefault();
    if (!event.repeat) found(event); // a held key scores once
  };
}
