/* Scores and other acts that wait to be stored.
 *
 * An act is written to localStorage before it is shown, one key for each, so that a reload, a
 * crash or a second tab loses none. It leaves when the server says that the disk has it. An act
 * sent twice is stored once: it carries its own id.
 */

function makeOutbox(store, annotator) {
  const prefix = `pararecover.outbox/${store}/${encodeURIComponent(annotator)}/`;
  let acts = [];
  let counter = 0;
  let keeps = true;

  function load() {
    const known = new Set(acts.map((act) => act.event));
    try {
      for (let at = 0; at < localStorage.length; at += 1) {
        const key = localStorage.key(at);
        if (!key.startsWith(prefix)) continue;
        const act = JSON.parse(localStorage.getItem(key));
        if (act && act.event && act.item && !known.has(act.event)) acts.push(act);
      }
    } catch {
      keeps = false;
    }
    acts.sort((a, b) => a.order - b.order);
  }

  function write(act) {
    try {
      localStorage.setItem(prefix + act.event, JSON.stringify(act));
      keeps = true;
    } catch {
      keeps = false; // private window or full storage: it still waits in memory
    }
  }

  function newId() {
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function add(act) {
    counter += 1;
    const kept = { ...act, event: newId(), order: Date.now() * 1000 + (counter % 1000) };
    write(kept);
    acts.push(kept);
    return kept;
  }

  function remove(event) {
    const at = acts.findIndex((act) => act.event === event);
    try {
      localStorage.removeItem(prefix + event);
    } catch {
      keeps = false;
    }
    return at < 0 ? null : acts.splice(at, 1)[0];
  }

  load();
  return {
    add,
    remove,
    all: () => acts,
    size: () => acts.length,
    keeps: () => keeps,
    of: (item) => acts.filter((act) => act.item === item),
    last: (item, dimension) =>
      acts.findLast((act) => act.item === item && act.dimension === dimension) || null,
  };
}

/* What a row shows: what the disk has, with what still waits laid over it. */
function laidOver(standing, waiting) {
  const rows = {};
  for (const [dimension, score] of Object.entries(standing.scores)) rows[dimension] = { ...score };
  const undo = standing.undo.slice();
  let note = standing.note;
  let state = standing.state;
  for (const act of waiting) {
    if (act.kind === "skip") state = "skipped";
    else if (act.kind === "flag") state = "flagged";
    else if (act.kind === "submit") state = "submitted";
    else if (act.kind === "note" && !act.dimension) note = act.note;
    if (!act.dimension) continue;
    const row = rows[act.dimension] || { value: null, note: "", revision: 0 };
    const before = [act.dimension, row.value, row.note];
    if (act.kind === "undo") {
      const at = undo.findLastIndex((entry) => entry[0] === act.dimension);
      if (at >= 0) undo.splice(at, 1);
    } else undo.push(before);
    if (act.kind === "score" || act.kind === "undo") row.value = act.value;
    if (act.kind === "clear") row.value = null;
    if (act.kind === "note" || act.kind === "undo") row.note = act.note || "";
    rows[act.dimension] = { ...row, waits: true, since: act.order };
  }
  return { ...standing, rows, undo, note, state };
}
