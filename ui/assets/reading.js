/* An item to read, without scoring: query, both plans, thought, observations, tools.
 * It is the left side of the Annotate workbench (annotate_reading.js). Python: ui/reading_panel.py.
 */

function mountReading(host) {
  const at = { ask: () => {}, key: null };
  const full = makeFullText(() => full.close());
  const reading = makeReading({
    full: (field) => {
      full.wait();
      at.ask(field);
    },
  });
  const bench = make("div", { class: "bench" }, reading.root, full.root);
  bench.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (full.open()) full.close();
    else reading.select(null);
  });
  host.append(bench);
  return {
    update: ({ content, full: text }, ask) => {
      at.ask = ask;
      if (at.key !== content.key) {
        at.key = content.key;
        full.close();
        reading.show(content, null);
      }
      if (text) full.show(text.text);
    },
    destroy: () => {
      reading.destroy();
      bench.remove();
    },
  };
}

export default function read(component) {
  const { data, parentElement, setTriggerValue } = component;
  parentElement.pararecoverReading ??= mountReading(parentElement);
  parentElement.pararecoverReading.update(data, (field) => setTriggerValue("full", field));
  return () => {
    if (parentElement.pararecoverReading) parentElement.pararecoverReading.destroy();
    parentElement.pararecoverReading = null;
  };
}
