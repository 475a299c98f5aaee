"use strict";
// Draws the context view. All text reaches the page through textContent; nothing here builds HTML from data.
(async () => {
  const $ = (id) => document.getElementById(id);
  const KINDS = { system: "system", developer: "system", user: "user", assistant: "assistant", "tool call": "call", "tool result": "result", summary: "summary" };
  const LEGEND = [["system", "system"], ["user", "user"], ["assistant", "assistant"], ["call", "tool call"], ["result", "tool result"], ["summary", "summary"]];
  const DRAWN = 4000;

  async function load() {
    const packed = Uint8Array.from(atob($("data").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  function element(name, text, properties = {}) {
    const made = Object.assign(document.createElement(name), properties);
    made.textContent = text;
    return made;
  }

  function sortTables() {
    for (const table of document.querySelectorAll("table.sortable")) {
      table.querySelectorAll("th").forEach((head, column) => {
        head.tabIndex = 0;
        const sort = () => {
          const up = head.getAttribute("aria-sort") === "descending";
          table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
          head.setAttribute("aria-sort", up ? "ascending" : "descending");
          const value = (row) => {
            const cell = row.cells[column];
            const number = cell.dataset.value;
            return number === undefined ? cell.textContent : number === "" ? -Infinity : Number(number);
          };
          const body = table.tBodies[0];
          const rows = [...body.rows].sort((a, b) => {
            const [x, y] = [value(a), value(b)];
            const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
            return up ? order : -order;
          });
          body.append(...rows);
        };
        head.addEventListener("click", sort);
        head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
      });
    }
  }

  sortTables();
  const data = await load();
  const { messages, units } = data;
  if (!units.length) { $("contexts").append(element("p", "This run holds no contexts.")); return; }

  // A unit's context at a call: from the start, the log grows and changes apply. What an edit hid stays in sight once.
  function contextAt(unit, call) {
    const shown = new Map();
    let stop = 0;
    let gone = new Map();
    const put = (index, rank, number, kind) => shown.set(`${index} ${rank}`, { index, rank, number, kind });
    for (let at = 0; at < call; at += 1) {
      const [, next, changes] = unit.calls[at];
      for (; stop < next; stop += 1) put(stop, 0, unit.log[stop], "");
      gone = new Map();
      for (const [kind, index, rank, number] of changes) {
        const key = `${index} ${rank}`;
        const before = shown.get(key);
        if (number < 0) {
          if (before) gone.set(key, { ...before, kind, gone: true });
          shown.delete(key);
        } else {
          put(index, rank, number, kind === "restored" ? "" : kind);
          if (before) shown.get(key).before = before.number;
        }
      }
    }
    const order = (a, b) => a.index - b.index || a.rank - b.rank;
    return { sent: [...shown.values()].sort(order), all: [...shown.values(), ...gone.values()].sort(order) };
  }

  const session = (unit) => `${unit.dataset} · ${unit.transcript} · ${unit.model} · seed ${unit.seed} · trial ${unit.trial}`;
  const sessions = [...new Set(units.map(session))];
  sessions.forEach((name) => $("session").append(element("option", name, { value: name })));
  const of = () => units.filter((unit) => session(unit) === $("session").value);
  const sides = ["left", "right"];
  const unitOn = (side) => of().find((unit) => unit.arm === $(`arm-${side}`).value);

  function fillArms() {
    const arms = of().map((unit) => unit.arm);
    sides.forEach((side, at) => {
      const select = $(`arm-${side}`);
      const kept = arms.includes(select.value) ? select.value : arms[Math.min(at, arms.length - 1)];
      select.replaceChildren(...arms.map((arm) => element("option", arm, { value: arm })));
      select.value = kept;
    });
    const most = Math.max(...of().map((unit) => unit.calls.length));
    $("call").max = String(most);
    if (Number($("call").value) > most) $("call").value = String(most);
  }

  // Live arms make different numbers of calls: the other side shows the same call of the same turn, or the turn's last.
  function callOn(unit, call, lead) {
    const number = Math.min(call, lead.calls.length);
    if (unit === lead) return number;
    const turnOf = (of, at) => of.calls[at - 1][0][1];
    const turn = turnOf(lead, number);
    let first = number;
    while (first > 1 && turnOf(lead, first - 1) === turn) first -= 1;
    const same = unit.calls.map((_, at) => at + 1).filter((at) => turnOf(unit, at) === turn);
    if (!same.length) return Math.min(number, unit.calls.length);
    return same[Math.min(number - first, same.length - 1)];
  }

  const count = (number) => (number === null || number === undefined ? "–" : Number(number).toLocaleString("en"));

  function drawSide(side, call, lead) {
    const unit = unitOn(side);
    const number = callOn(unit, call, lead);
    const [facts] = unit.calls[number - 1];
    const [, turn, input, read, before, compacted, cost] = facts;
    const { all } = contextAt(unit, number);
    $(`facts-${side}`).textContent = `call ${number} of ${unit.calls.length}, turn ${turn}: ${count(input)} tokens sent`
      + (read === null ? "" : `, ${count(read)} read from the cache`)
      + (compacted ? "; compacted before this call" : "") + `; history ${count(before)}`
      + (cost === null ? "" : `; $${cost.toPrecision(3)}`);
    const stack = $(`stack-${side}`);
    const total = all.reduce((sum, entry) => sum + messages[entry.number][1], 0) || 1;
    const scale = Math.max(stack.clientHeight, 300) / total;
    const drawn = document.createDocumentFragment();
    const skipped = Math.max(0, all.length - DRAWN);
    if (skipped) drawn.append(element("p", `${count(skipped)} older blocks are not drawn`));
    let sofar = 0;
    all.forEach((entry, at) => {
      const [kind, tokens, text] = messages[entry.number];
      const cached = !entry.gone && read !== null && sofar + tokens <= read;
      if (!entry.gone) sofar += tokens;
      if (at < skipped) return;
      const block = element("button", `${kind} · ${count(tokens)}${entry.kind ? ` · ${entry.kind}` : ""} · ${text.slice(0, 160)}`, { type: "button", className: "block" });
      block.style.setProperty("--kind", `var(--${KINDS[kind] || "system"})`);
      const height = Math.max(5, tokens * scale);
      block.style.height = `${height}px`;
      if (height < 15) block.classList.add("small");
      block.setAttribute("role", "option");
      block.title = `${kind}, ${count(tokens)} tokens${entry.kind ? `, ${entry.kind}` : ""}${entry.gone ? " at this call" : ""}`;
      if (entry.gone) block.classList.add("gone");
      else if (read !== null) block.classList.add(cached ? "read" : "fresh");
      if (entry.kind && !entry.gone) block.classList.add("stand-in");
      block.addEventListener("click", () => showText(block, unit, entry));
      drawn.append(block);
    });
    stack.replaceChildren(drawn);
  }

  function showText(block, unit, entry) {
    document.querySelectorAll('.block[aria-selected="true"]').forEach((other) => other.removeAttribute("aria-selected"));
    block.setAttribute("aria-selected", "true");
    const original = entry.rank === 0 ? unit.log[entry.index] : entry.before;
    const [kind, tokens, text] = messages[entry.number];
    $("text").hidden = false;
    $("text-title").textContent = `message ${entry.index}${entry.rank ? `+${entry.rank}` : ""}: ${kind}, ${count(tokens)} tokens${entry.kind ? `, ${entry.kind}` : ""}`;
    $("text-before").textContent = original === undefined ? "(not in the conversation)" : messages[original][2];
    $("text-after").textContent = entry.gone ? "(hidden)" : text;
  }

  function drawMisses(lead) {
    const rows = lead.misses.map(([call, turn, probe, kind]) => {
      const button = element("button", `turn ${turn}: ${kind} ${probe}`, { type: "button" });
      button.addEventListener("click", () => goTo(callOfMiss(lead, call, turn)));
      return button;
    });
    $("misses").replaceChildren(...(rows.length ? [element("h3", `Missed by ${lead.arm}: ${rows.length}`), ...rows.slice(0, 200)] : []));
  }

  function callOfMiss(unit, call, turn) {
    if (call) return call;
    let found = 1;
    unit.calls.forEach(([facts], at) => { if (facts[1] <= turn) found = at + 1; });
    return found;
  }

  function goTo(call) {
    $("call").value = String(Math.max(1, Math.min(Number($("call").max), call)));
    draw();
  }

  function nextMiss() {
    const lead = unitOn("left");
    const calls = lead.misses.map(([call, turn]) => callOfMiss(lead, call, turn)).sort((a, b) => a - b);
    if (!calls.length) { $("where").textContent = "no miss in this arm"; return; }
    const now = Number($("call").value);
    goTo(calls.find((call) => call > now) ?? calls[0]);
  }

  function draw() {
    const call = Number($("call").value);
    const lead = unitOn("left");
    $("where").textContent = `${Math.min(call, lead.calls.length)} of ${lead.calls.length}`;
    sides.forEach((side) => drawSide(side, call, lead));
    drawMisses(lead);
    $("text").hidden = true;
  }

  LEGEND.forEach(([name, label]) => {
    const item = element("li", label);
    const sample = document.createElement("span");
    sample.style.setProperty("--kind", `var(--${name})`);
    item.prepend(sample);
    $("legend").append(item);
  });
  ["hatched: hidden at this call", "striped: a stand-in", "dark right edge: sent anew", "light right edge: read from the cache"].forEach((text) => $("legend").append(element("li", text)));
  $("session").addEventListener("change", () => { fillArms(); draw(); });
  sides.forEach((side) => $(`arm-${side}`).addEventListener("change", draw));
  $("call").addEventListener("input", draw);
  $("previous").addEventListener("click", () => goTo(Number($("call").value) - 1));
  $("next").addEventListener("click", () => goTo(Number($("call").value) + 1));
  $("miss").addEventListener("click", nextMiss);
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowLeft") goTo(Number($("call").value) - 1);
    else if (event.key === "ArrowRight") goTo(Number($("call").value) + 1);
    else if (event.key === "m") nextMiss();
  });
  fillArms();
  goTo(Number($("call").max));
  document.body.dataset.ready = "true";
})();
