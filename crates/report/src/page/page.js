"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const filter = document.getElementById("filter");
  const failures = all("details.failure");
  const rows = all(".matrix tbody tr").filter(row => !row.closest(".brief"));
  const keys = ["status", "transport", "protocol"];
  let at = -1;

  document.getElementById("tools").hidden = false;

  function parse(text) {
    const query = { words: [] };
    for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
      const [key, ...rest] = word.split(":");
      if (keys.includes(key) && rest.length && rest.join(":")) query[key] = rest.join(":");
      else query.words.push(word);
    }
    return query;
  }

  const text = new Map();
  function has(element, words) {
    if (!words.length) return true;
    if (!text.has(element)) text.set(element, element.textContent.toLowerCase() + " " + (element.querySelector("th")?.title ?? "").toLowerCase());
    return words.every(word => text.get(element).includes(word));
  }

  // The cells of each failure as "transport/protocol".
  const cells = new Map(failures.map(failure => [failure.id, all(".places code", failure).map(place => place.textContent.toLowerCase())]));
  const tables = all(".matrix").map(table => {
    const heads = all("thead th[data-transport]", table);
    const names = heads.map(head => [head.dataset.transport, head.dataset.protocol].join("/").toLowerCase());
    for (const link of all("tbody a", table)) cells.get(link.hash.slice(1))?.push(names[link.parentElement.cellIndex - 1]);
    const columns = all("col", table).slice(1);
    const boxes = all("colgroup + colgroup", table);
    const groups = all("thead tr:first-child th", table).map((head, index) => ({ head, box: boxes[index], span: head.colSpan }));
    return { heads, names, columns, groups, rows: all("tbody tr", table) };
  });

  function apply() {
    const query = parse(filter.value);
    const isPlace = name => {
      const at = name.lastIndexOf("/");
      return (!query.transport || name.slice(0, at).includes(query.transport)) && (!query.protocol || name.slice(at + 1).includes(query.protocol));
    };
    const hide = (element, hidden) => element.classList.toggle("hidden", Boolean(hidden));
    for (const { heads, names, columns, groups, rows } of tables) {
      const shown = names.map(isPlace);
      shown.forEach((isShown, index) => { hide(heads[index], !isShown); hide(columns[index], !isShown); });
      let first = 0;
      for (const { head, box, span } of groups) {
        const left = shown.slice(first, first += span).filter(Boolean).length;
        hide(head, !left);
        hide(box, !left);
        head.colSpan = left || span;
      }
      for (const row of rows) {
        let hits = false;
        [...row.cells].slice(1, 1 + names.length).forEach((cell, index) => {
          hide(cell, !shown[index]);
          hits ||= shown[index] && (query.status ? [...cell.classList].some(name => name.startsWith(query.status)) : cell.textContent !== "");
        });
        hide(row, !hits || !has(row, query.words));
      }
    }
    for (const failure of failures) {
      const isAnywhere = (!query.transport && !query.protocol) || cells.get(failure.id).some(isPlace);
      hide(failure, !((!query.status || failure.dataset.status.startsWith(query.status)) && isAnywhere && has(failure, query.words)));
    }
    for (const area of all("details.area")) {
      const found = area.querySelector("tbody tr:not(.hidden)");
      hide(area, !found);
      if (found && filter.value) area.open = true;
    }
    // A heading goes with the failures below it; what has no outcome is not searched.
    for (const section of all("main > section")) {
      let head, found;
      for (const part of section.children) {
        if (part.tagName === "H3") { head = part; found = false; }
        else if (head && part.classList.contains("failure")) { found ||= !part.classList.contains("hidden"); hide(head, !found); }
      }
      for (const part of all(".untested", section)) {
        const isHidden = query.status && !"not-tested".startsWith(query.status);
        hide(part, isHidden);
        hide(part.previousElementSibling, isHidden);
        if (query.status && !isHidden) part.open = true;
      }
    }
    const left = failures.filter(failure => !failure.classList.contains("hidden")).length;
    document.getElementById("found").textContent = filter.value
      ? `${left} of ${failures.length} causes, ${rows.filter(row => !row.classList.contains("hidden")).length} of ${rows.length} rows` : "";
  }

  function save(id) {
    const state = new URLSearchParams();
    if (filter.value) state.set("q", filter.value);
    if (id) state.set("at", id);
    const fragment = filter.value ? state.toString() : id ?? "";
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
  }

  function show(element, keep) {
    if (!element) return;
    failures.forEach(failure => failure.classList.toggle("at", failure === element));
    at = failures.indexOf(element);
    element.classList.remove("hidden");
    element.open = true;
    element.scrollIntoView({ block: "start" });
    element.querySelector("summary").focus({ preventScroll: true });
    if (keep) save(element.id);
  }

  function load() {
    const state = new URLSearchParams(location.hash.slice(1));
    filter.value = state.get("q") ?? "";
    apply();
    show(document.getElementById(state.get("at") ?? location.hash.slice(1))?.closest("details.failure"));
  }

  function move(step) {
    const left = failures.filter(failure => !failure.classList.contains("hidden"));
    if (!left.length) return;
    const now = left.indexOf(failures[at]);
    show(left[now < 0 ? (step > 0 ? 0 : left.length - 1) : (now + step + left.length) % left.length], true);
  }

  filter.addEventListener("input", () => { apply(); save(); });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === filter) {
      if (event.key === "Escape") { filter.value = ""; apply(); save(); filter.blur(); }
      if (event.key === "Enter") { filter.blur(); move(1); }
      return;
    }
    const actions = {
      "/": () => filter.focus(),
      j: () => move(1),
      k: () => move(-1),
      o: () => { const failure = failures[at]; if (failure) failure.open = !failure.open; },
    };
    if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
  });
  for (const button of all("button.copy")) button.hidden = false;
  async function copy(button) {
    const line = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(line.textContent);
    } catch {
      getSelection().selectAllChildren(line);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  }
  document.addEventListener("click", event => {
    if (event.target.matches?.("button.copy")) copy(event.target);
    const link = event.target.closest?.("a[href^='#']");
    const failure = link && document.getElementById(link.hash.slice(1))?.closest("details.failure");
    if (failure) { event.preventDefault(); show(failure, true); }
  });
  window.addEventListener("hashchange", load);
  load();
})();
