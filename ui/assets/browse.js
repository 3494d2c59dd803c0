/* The Trajectories page: filters, list and one item. What is shown is the link's own query. */

function makeBrowse(root, send) {
  const feed = (window.pararecoverBrowse ??= { data: null, listeners: new Set() });
  const bar = make("section", { class: "card fl", "aria-label": "Filter" });
  const listCard = make("section", { class: "card lst", "aria-label": "Items" });
  const detailCard = make("section", { class: "card det", "aria-label": "The open item" });
  const page = make("div", { class: "browse" }, bar, listCard, detailCard);
  root.append(page);
  const at = { query: {}, sort: null, item: null, shown: 0, contents: new Map(), seq: 0, sent: send };
  const filters = makeFilters(bar, change);
  const list = makeList(listCard, { open, change });
  const detail = makeDetail(detailCard, { open, go });
  blank();

  function ask() {
    at.seq += 1;
    at.sent({ seq: at.seq, query: at.query });
    page.setAttribute("aria-busy", "true");
  }

  /* A new filter or order starts at page 1; only what is named changes. */
  function change(fields) {
    const next = { ...at.query };
    if (!("page" in fields)) delete next.page;
    for (const [name, value] of Object.entries(fields)) {
      if (value === null) delete next[name];
      else next[name] = value;
    }
    at.query = next;
    filters.show(next, null);
    ask();
  }

  function open(key) {
    if (at.item && at.item.key === key) return;
    const next = { ...at.query, item: [key] };
    delete next.round;
    at.query = next;
    list.point(key);
    ask();
  }

  function go(place) {
    if (!at.item || place < 0 || place >= at.item.strip.length || place === at.shown) return;
    at.shown = place;
    at.query = { ...at.query, round: [String(at.item.strip[place].number)] };
    draw();
    ask();
  }

  function draw() {
    if (!at.item) return;
    detail.show(at.item, at.shown, at.contents.get(at.shown) || null);
  }

  function blank(missing) {
    at.item = null;
    detail.blank(missing ? [make("p", { class: "b", text: "The linked item is not in this database." }),
      make("p", { class: "quiet", text: `No replan or instance has the key ${short(missing, 60)}. Import the file that holds it, or check the link.` })]
      : [make("p", { class: "b", text: "No item is open." }), make("p", { class: "quiet", text: "Choose a row: its rounds, plans, thoughts and observations are shown here." })]);
  }

  function receive(data) {
    if (!data) return;
    if (data.list || data.facets || data.sort) {
      if (data.seq >= at.seq || data.fresh) at.query = data.query;
      at.sort = data.sort;
      list.show(data.list || null, data.sort, (data.query.item || [""])[0]);
      filters.show(at.query, data.facets || null);
    }
    if ("item" in data) {
      at.contents = new Map();
      if (data.item && !data.item.missing) at.item = data.item;
      else blank(data.item ? data.item.missing : "");
    }
    const rounds = data.rounds;
    if (rounds && at.item && rounds.item === at.item.key) {
      for (const [place, content] of Object.entries(rounds.contents)) at.contents.set(Number(place), at.contents.get(Number(place)) || content);
      if (data.seq >= at.seq || data.fresh || "item" in data) at.shown = rounds.shown;
      draw();
    }
    if (data.seq >= at.seq) page.removeAttribute("aria-busy");
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const pressed = event.composedPath()[0];
    if (pressed instanceof Element && pressed.closest("input, select, textarea, [role=slider], [role=dialog], [role=menu], [contenteditable]")) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (!at.item || at.item.strip.length < 2) return;
      event.preventDefault();
      go(at.shown + (event.key === "ArrowRight" ? 1 : -1));
    } else if (event.key === "Escape" && detail.selected() !== null) {
      detail.select(detail.selected());
    }
  }

  function size() {
    const top = page.getBoundingClientRect().top + (window.scrollY || 0);
    page.style.setProperty("--browse", `${Math.max(600, window.innerHeight - Math.max(top, 0) - 8)}px`);
  }

  document.addEventListener("keydown", keys);
  window.addEventListener("resize", size);
  feed.listeners.add(receive);
  size();
  receive(feed.data && { ...feed.data, fresh: true });

  return {
    use: (next) => { at.sent = next; },
    destroy() {
      document.removeEventListener("keydown", keys);
      window.removeEventListener("resize", size);
      feed.listeners.delete(receive);
      filters.destroy();
      detail.destroy();
      page.remove();
    },
  };
}

export default function browse({ parentElement, setStateValue }) {
  const send = (value) => setStateValue("asked", value);
  if (parentElement.pararecoverBrowse) parentElement.pararecoverBrowse.use(send);
  else parentElement.pararecoverBrowse = makeBrowse(parentElement, send);
  return () => {
    if (parentElement.pararecoverBrowse) parentElement.pararecoverBrowse.destroy();
    parentElement.pararecoverBrowse = null;
  };
}
