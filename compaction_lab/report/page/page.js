"use strict";
// Draws the context view. All text reaches the page through textContent; nothing here builds HTML from data.
(async () => {
  const $ = (id) => document.getElementById(id);
  const WHO = { system: "system", user: "user", assistant: "assistant", "tool call": "call", "tool result": "result", summary: "summary" };
  const HAPPENED = { masked: "▤", collapsed: "⇥", clipped: "✂", dropped: "✕", summarised: "Σ", inserted: "+", restored: "↺" };
  const PAID = { read: "read from the cache", rewritten: "sent before, paid in full again", fresh: "new with this call" };
  const SIDES = ["left", "right"];
  const LOWEST = 6;       // px: a message of one token can still be seen and clicked
  const LABELLED = 15;    // px from which a line of text fits
  const BEYOND = 400;     // px drawn above and below what is in sight
  const BEFORE_LIMIT = 200000;
  const LISTED = 200;

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

  const count = (number) => (number === null || number === undefined ? "–" : Number(number).toLocaleString("en"));

  const many = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

  function sortTables() {
    for (const table of document.querySelectorAll("table")) {
      table.querySelectorAll("th").forEach((head, column) => {
        head.tabIndex = 0;
        head.title = "sort by this column";
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
            const order = typeof x === "number" && typeof y === "number" ? x - y || 0 : String(x).localeCompare(String(y), "en", { numeric: true });
            return up ? order : -order;
          });
          body.append(...rows);
        };
        head.addEventListener("click", sort);
        head.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          sort();
        });
      });
    }
  }

  sortTables();
  const data = await load();
  const messages = data.messages;
  const units = data.units.filter((unit) => unit.calls.length);
  if (!units.length) {
    $("contexts").replaceChildren($("contexts").querySelector("h2"), element("p", "This run holds no contexts."));
    document.body.dataset.ready = "true";
    return;
  }

  // A unit's context at a call: the log grows, changes apply; what went is remembered with what happened to it.
  const played = new WeakMap();

  function contextAt(unit, call) {
    let state = played.get(unit);
    if (!state || state.call > call) state = { call: 0, stop: 0, shown: new Map(), gone: new Map() };
    played.set(unit, state);
    for (; state.call < call; state.call += 1) advance(unit, state);
    return state;
  }

  function advance(unit, state) {
    const now = state.call + 1;
    const [, next, changes] = unit.calls[state.call];
    for (; state.stop < next; state.stop += 1) {
      state.shown.set(`${state.stop} 0`, { index: state.stop, rank: 0, number: unit.log[state.stop], kind: "", since: now, covers: [] });
    }
    const went = [];
    const came = [];
    for (const [kind, index, rank, number] of changes) {
      const key = `${index} ${rank}`;
      const before = state.shown.get(key);
      if (number < 0) {
        state.shown.delete(key);
        if (before) {
          went.push({ ...before, kind, at: now, gone: true });
          state.gone.set(key, went.at(-1));
        }
        continue;
      }
      const entry = { index, rank, number, kind, since: now, changed: now, covers: before && rank ? [before.number] : [] };
      state.shown.set(key, entry);
      state.gone.delete(key);
      if (kind !== "restored") came.push(entry);
    }
    // A summary or collapsed group stands for what went in the same way at the same call, the nearest one for each.
    for (const lost of went) {
      const heirs = came.filter((entry) => entry.kind === lost.kind);
      const nearest = heirs.reduce((best, entry) => (!best || Math.abs(entry.index - lost.index) < Math.abs(best.index - lost.index) ? entry : best), null);
      if (nearest) nearest.covers.push(lost.number);
    }
  }

  // What is looked at: a session, an arm a side, and a step both sides share.
  const session = (unit) => [unit.dataset, unit.transcript, unit.model, `seed ${unit.seed}`, `trial ${unit.trial}`].join(" · ");
  const sessions = [...new Set(units.map(session))];
  sessions.forEach((name) => $("session").append(element("option", name, { value: name })));
  const unitOn = Object.fromEntries(SIDES.map((side) => [side, null]));
  const rowsOn = { left: [], right: [] };
  let steps = [];
  let selected = null;
  let misses = [];
  let missAt = -1;

  // Live arms make different numbers of calls: a step is the k-th call of a turn; who has fewer shows the turn's last.
  const turnsOf = new WeakMap();
  function turns(unit) {
    if (!turnsOf.has(unit)) {
      const found = new Map();
      unit.calls.forEach(([[turn]], at) => found.set(turn, [...(found.get(turn) ?? []), at + 1]));
      turnsOf.set(unit, found);
    }
    return turnsOf.get(unit);
  }

  function fillArms() {
    const here = units.filter((unit) => session(unit) === $("session").value);
    SIDES.forEach((side, at) => {
      const select = $(`arm-${side}`);
      const kept = here.find((unit) => unit.arm === select.value) ?? here[Math.min(at, here.length - 1)];
      select.replaceChildren(...here.map((unit) => element("option", unit.arm, { value: unit.arm })));
      select.value = kept.arm;
    });
    chooseArms();
  }

  function chooseArms() {
    const here = units.filter((unit) => session(unit) === $("session").value);
    const stood = steps[Number($("call").value) - 1];
    SIDES.forEach((side) => { unitOn[side] = here.find((unit) => unit.arm === $(`arm-${side}`).value); });
    const both = SIDES.map((side) => turns(unitOn[side]));
    const all = [...new Set(both.flatMap((map) => [...map.keys()]))].sort((a, b) => a - b);
    steps = all.flatMap((turn) => Array.from({ length: Math.max(...both.map((map) => map.get(turn)?.length ?? 0)) }, (_, k) => [turn, k]));
    $("call").max = String(steps.length);
    if (stood) $("call").value = String(stepNear(...stood));
    const seen = SIDES.filter((side, at) => at === 0 || unitOn.left !== unitOn.right);
    misses = seen.flatMap((side) => unitOn[side].misses.map(([call, turn, label, source]) => ({ side, label, source, turn, step: stepOfMiss(unitOn[side], call, turn) })));
    misses.sort((a, b) => a.step - b.step);
    missAt = -1;
    listMisses();
  }

  function stepNear(turn, k) {
    const same = steps.findIndex(([t, j]) => t === turn && j === k);
    if (same >= 0) return same + 1;
    return Math.max(1, steps.filter(([t]) => t <= turn).length);
  }

  function stepOfMiss(unit, call, turn) {
    const at = turns(unit).get(turn) ?? [];
    const k = call > 0 ? at.indexOf(call) : at.length - 1;
    return stepNear(turn, k);
  }

  function callOn(unit, [turn, k]) {
    const own = turns(unit).get(turn);
    if (own) return own[Math.min(k, own.length - 1)];
    return Math.max(1, unit.calls.filter(([[t]]) => t <= turn).length);
  }

  // Drawing.
  function look(side) {
    const unit = unitOn[side];
    const call = callOn(unit, steps[Number($("call").value) - 1]);
    const state = contextAt(unit, call);
    const everything = $("hidden").checked;
    const gone = [...state.gone.values()].filter((entry) => everything || entry.at === call);
    const rows = [...state.shown.values(), ...gone].sort((a, b) => a.index - b.index || a.rank - b.rank);
    const sent = [...state.shown.values()].reduce((sum, entry) => sum + messages[entry.number][1], 0);
    const total = rows.reduce((sum, entry) => sum + messages[entry.number][1], 0);
    const hidden = [...state.gone.values()].filter((entry) => entry.rank === 0);
    const replaced = [...state.shown.values()].filter((entry) => entry.kind && entry.kind !== "restored");
    return { unit, call, rows, sent, total, hidden, replaced };
  }

  function say(side, { unit, call, hidden, replaced }) {
    const [turn, input, read, before, compacted, cost] = unit.calls[call - 1][0];
    const lost = hidden.reduce((sum, entry) => sum + messages[entry.number][1], 0);
    $(`facts-${side}`).textContent = [
      `call ${call} of ${unit.calls.length}, turn ${turn}: ${count(input)} tokens sent (history ${count(before)})`,
      read === null ? "" : `${count(read)} read from the cache`,
      cost === null ? "" : `$${cost.toPrecision(3)}`,
      compacted ? "compacted for this call" : "",
      hidden.length ? `so far ${many(hidden.length, "message")} hidden (${count(lost)} tokens)` : "",
      replaced.length ? `${many(replaced.length, "stand-in")} in sight` : "",
      hidden.length || replaced.length ? "" : "nothing hidden or replaced",
    ].filter(Boolean).join("; ");
  }

  function pile(side, { unit, call, rows, sent }, scale) {
    const [, input, read] = unit.calls[call - 1][0];
    let upTo = Math.max(0, input - sent); // tool definitions and overhead come first
    let top = 0;
    rowsOn[side] = rows.map((entry) => {
      const tokens = messages[entry.number][1];
      const height = Math.max(LOWEST, tokens * scale);
      const row = { entry, top, height, paid: "" };
      top += height;
      if (!entry.gone) {
        upTo += tokens;
        if (read !== null) row.paid = upTo <= read ? "read" : entry.since < call ? "rewritten" : "fresh";
      }
      return row;
    });
    const stack = $(`stack-${side}`);
    const holder = element("div", "", { className: "pile" });
    holder.style.height = `${top}px`;
    stack.replaceChildren(holder);
    const changed = rowsOn[side].find(({ entry }) => (entry.gone ? entry.at : entry.changed) === call);
    stack.scrollTop = changed ? changed.top - 40 : top;
    drawSeen(side);
  }

  // Only the blocks in sight are in the document, so that thousands of messages cost no more than a screenful.
  function drawSeen(side) {
    const stack = $(`stack-${side}`);
    const rows = rowsOn[side];
    const [from, to] = [stack.scrollTop - BEYOND, stack.scrollTop + stack.clientHeight + BEYOND];
    let first = 0;
    let last = rows.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (rows[middle].top + rows[middle].height < from) first = middle + 1;
      else last = middle;
    }
    const drawn = document.createDocumentFragment();
    for (let at = first; at < rows.length && rows[at].top < to; at += 1) drawn.append(block(side, at));
    stack.firstChild.replaceChildren(drawn);
    const active = selected?.side === side ? rowOf(selected) : -1;
    if (active >= 0) stack.setAttribute("aria-activedescendant", `block-${side}-${active}`);
    else stack.removeAttribute("aria-activedescendant");
  }

  function block(side, at) {
    const { entry, top, height, paid } = rowsOn[side][at];
    const [kind, tokens, text] = messages[entry.number];
    const mark = HAPPENED[entry.kind];
    const words = `${mark ? `${mark} ${entry.kind} · ` : ""}${kind} · ${count(tokens)} · ${text.slice(0, 160)}`;
    const made = element("div", "", { id: `block-${side}-${at}`, className: `block ${entry.kind} ${paid}` });
    made.append(element("span", words));
    made.style.setProperty("--who", `var(--${WHO[kind] ?? "system"})`);
    made.style.top = `${top}px`;
    made.style.height = `${height}px`;
    if (height < LABELLED) made.classList.add("small");
    if (entry.gone) made.classList.add("gone");
    made.setAttribute("role", "option");
    made.setAttribute("aria-posinset", at + 1);
    made.setAttribute("aria-setsize", rowsOn[side].length);
    made.setAttribute("aria-label", [kind, `${count(tokens)} tokens`, entry.kind || "kept", entry.gone ? "hidden" : "", PAID[paid] ?? ""].filter(Boolean).join(", "));
    made.title = made.getAttribute("aria-label");
    made.setAttribute("aria-selected", selected?.side === side && rowOf(selected) === at);
    made.addEventListener("click", () => { select(side, at); $("text").scrollIntoView({ block: "nearest" }); });
    return made;
  }

  const rowOf = ({ side, index, rank }) => rowsOn[side].findIndex(({ entry }) => entry.index === index && entry.rank === rank);

  function select(side, at) {
    const { entry } = rowsOn[side][at];
    selected = { side, index: entry.index, rank: entry.rank };
    const stack = $(`stack-${side}`);
    const { top, height } = rowsOn[side][at];
    if (top < stack.scrollTop || top + height > stack.scrollTop + stack.clientHeight) stack.scrollTop = top - stack.clientHeight / 3;
    SIDES.forEach(drawSeen);
    showText();
  }

  function showText() {
    const at = selected ? rowOf(selected) : -1;
    $("text").hidden = at < 0;
    if (at < 0) { selected = null; return; }
    const { entry, paid } = rowsOn[selected.side][at];
    const unit = unitOn[selected.side];
    const [kind, tokens, text] = messages[entry.number];
    const originals = [...(entry.rank === 0 ? [unit.log[entry.index]] : []), ...entry.covers];
    const name = `${unit.arm}: message ${entry.index}${entry.rank ? `+${entry.rank}` : ""}`;
    $("text-title").textContent = [`${name}, ${kind}`, `${count(tokens)} tokens`, entry.kind || "kept as it is", PAID[paid] ?? ""].filter(Boolean).join(", ");
    $("text-before").textContent = originals.map((number) => messages[number][2]).join("\n\n").slice(0, BEFORE_LIMIT) || "(not in the conversation)";
    $("text-after").textContent = entry.gone ? "(hidden: the model does not see it)" : text;
  }

  function draw() {
    const call = Number($("call").value);
    $("where").textContent = `${call} of ${steps.length}`;
    $("call").setAttribute("aria-valuetext", `step ${call} of ${steps.length}, turn ${steps[call - 1][0]}`);
    const looks = SIDES.map(look);
    // One scale for both sides, so that less is seen to be less.
    const room = Math.max($("stack-left").clientHeight, 200) - 4;
    const scale = room / Math.max(1, ...looks.map(({ total }) => total));
    SIDES.forEach((side, at) => {
      say(side, looks[at]);
      pile(side, looks[at], scale);
    });
    showText();
  }

  function goTo(step) {
    $("call").value = String(Math.max(1, Math.min(steps.length, step)));
    draw();
  }

  const step = (by) => { $("said").textContent = ""; goTo(Number($("call").value) + by); };

  // Misses.
  function listMisses() {
    $("missed").replaceChildren(...SIDES.filter((side, at) => at === 0 || unitOn.left !== unitOn.right).flatMap((side) => {
      const own = misses.filter((miss) => miss.side === side);
      if (!own.length) return [];
      const list = element("ul", "");
      own.slice(0, LISTED).forEach((miss) => {
        const button = element("button", `turn ${miss.turn}, step ${miss.step}: ${miss.label}`, { type: "button" });
        button.addEventListener("click", () => showMiss(misses.indexOf(miss)));
        const item = element("li", "");
        item.append(button);
        list.append(item);
      });
      const more = own.length > LISTED ? `, the first ${LISTED} of them` : "";
      return [element("h3", `Missed by ${unitOn[side].arm}: ${count(own.length)}${more}`), list];
    }));
  }

  function nextMiss() {
    if (!misses.length) { $("said").textContent = "neither arm missed anything"; return; }
    const now = Number($("call").value);
    const standing = missAt >= 0 && misses[missAt].step === now;
    const next = standing ? missAt + 1 : misses.findIndex((miss) => miss.step >= now);
    showMiss(next < 0 || next >= misses.length ? 0 : next);
  }

  function showMiss(at) {
    missAt = at;
    const { side, label, source, step: where } = misses[at];
    selected = source >= 0 ? { side, index: source, rank: 0 } : null;
    goTo(where);
    if (source >= 0 && rowOf({ side, index: source, rank: 0 }) < 0) {
      $("hidden").checked = true;
      selected = { side, index: source, rank: 0 };
      draw();
    }
    const row = source >= 0 ? rowOf({ side, index: source, rank: 0 }) : -1;
    if (row >= 0) select(side, row);
    $("said").textContent = `Miss ${at + 1} of ${misses.length}, ${unitOn[side].arm}: ${label}`;
  }

  // Legend and controls.
  function legend() {
    const line = (title, className, items) => {
      const row = element("div", "", { className });
      row.append(element("b", title));
      items.forEach(([label, sample, who]) => {
        const item = element("span", label);
        if (sample === "gone") item.className = "gone";
        else {
          const box = element("i", "", { className: sample });
          if (who) box.style.setProperty("--who", `var(--${who})`);
          item.prepend(box);
        }
        row.append(item);
      });
      return row;
    };
    $("legend").append(
      line("Left edge:", "who", Object.entries(WHO).map(([label, who]) => [label, "", who])),
      line("What happened:", "what", [["kept", ""], ...Object.entries(HAPPENED).map(([kind, mark]) => [`${mark} ${kind}`, kind]), ["hidden", "gone"]]),
      line("Right edge:", "edge", Object.entries(PAID).map(([kind, label]) => [label, kind])),
    );
  }

  function onStackKey(side, event) {
    const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || !rowsOn[side].length) return;
    event.preventDefault();
    const at = selected?.side === side ? rowOf(selected) : -1;
    select(side, Math.max(0, Math.min(rowsOn[side].length - 1, at + by)));
  }

  legend();
  $("legend").open = window.innerWidth > 640;
  $("session").addEventListener("change", () => { steps = []; selected = null; fillArms(); goTo(start()); });
  SIDES.forEach((side) => {
    $(`arm-${side}`).addEventListener("change", () => { chooseArms(); goTo(Number($("call").value)); });
    $(`stack-${side}`).addEventListener("scroll", () => drawSeen(side), { passive: true });
    $(`stack-${side}`).addEventListener("keydown", (event) => onStackKey(side, event));
  });
  $("call").addEventListener("input", () => step(0));
  $("hidden").addEventListener("change", draw);
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("miss").addEventListener("click", nextMiss);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) draw();
    width = window.innerWidth;
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input:not([type=checkbox]), select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === "m") nextMiss();
    else if (event.key === "h") { $("hidden").checked = !$("hidden").checked; draw(); }
    else if (event.key === "Escape") { selected = null; draw(); }
    else return;
    event.preventDefault();
  });

  // The view opens where there is something to see: the first call whose context the right arm had changed.
  function start() {
    const acted = unitOn.right.calls.findIndex(([, , changes]) => changes.length);
    const [turn] = acted >= 0 ? unitOn.right.calls[acted][0] : [0];
    return acted >= 0 ? stepNear(turn, turns(unitOn.right).get(turn).indexOf(acted + 1)) : steps.length;
  }

  fillArms();
  goTo(start());
  document.body.dataset.ready = "true";
})();
