"use strict";
// Everything that comes from the server, and through it from peers, is put into the page as
// text (textContent), never as HTML.

const element = (id) => document.getElementById(id);

function make(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

// Formats of cells.
function scaled(n, units, base) {
  let i = 0;
  while (Math.abs(n) >= base && i < units.length - 1) { n /= base; i++; }
  return (i === 0 ? Math.round(n).toString() : n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0)) + units[i];
}
const count = (n) => Number.isInteger(n) ? n.toLocaleString("en") : n.toLocaleString("en", { maximumFractionDigits: 3 });
const bytes = (n) => n < 0 ? "" : scaled(n, [" B", " KiB", " MiB", " GiB", " TiB"], 1024);
const rate = (n) => n === undefined ? "" : scaled(n, ["", " k", " M", " G"], 1000);
const byteRate = (n) => n === undefined ? "" : bytes(n) + "/s";
function span(s) {
  if (s < 0) return "";
  if (s < 0.001) return (s * 1e6).toFixed(0) + " µs";
  if (s < 1) return (s * 1000).toFixed(s < 0.01 ? 2 : 0) + " ms";
  if (s < 60) return s.toFixed(1) + " s";
  const m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  if (m < 60) return m + " min " + Math.floor(s % 60) + " s";
  return h < 24 ? h + " h " + m % 60 + " min" : d + " d " + h % 24 + " h";
}

// A Table shows rows of objects. columns: [title, key, format], a text without a format. Where
// another one sorts (the server), sorted is called with the order and the rows are left as they are.
class Table {
  constructor(parent, columns, { order = "", keys = null, sorted = null } = {}) {
    this.columns = columns; this.order = order; this.keys = keys; this.sorted = sorted; this.rows = [];
    const table = make("table"), head = make("tr"), top = make("thead");
    this.body = make("tbody");
    this.heads = columns.map(([title, key, format]) => {
      const th = make("th", title, format ? "number" : "");
      if (!keys || keys.includes(key)) {
        th.classList.add("sorts");
        th.dataset.key = key;
        th.onclick = () => this.sort(this.order === "-" + key ? key : "-" + key);
      }
      head.append(th);
      return th;
    });
    top.append(head);
    table.append(top, this.body);
    parent.replaceChildren(table);
    this.mark();
  }
  mark() {
    for (const th of this.heads) {
      const key = th.dataset.key;
      if (key !== undefined && this.order === key) th.setAttribute("aria-sort", "ascending");
      else if (key !== undefined && this.order === "-" + key) th.setAttribute("aria-sort", "descending");
      else th.removeAttribute("aria-sort");
    }
  }
  sort(order) {
    this.order = order;
    this.mark();
    if (this.sorted) this.sorted(order); else this.show(this.rows);
  }
  show(rows) {
    this.rows = rows;
    if (this.order && !this.sorted) {
      const falls = this.order.startsWith("-"), key = falls ? this.order.slice(1) : this.order;
      const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
      rows = [...rows].sort((a, b) => (falls ? -1 : 1) * compare(a[key], b[key]));
    }
    const all = document.createDocumentFragment();
    for (const row of rows) {
      const tr = make("tr");
      for (const [, key, format] of this.columns) {
        const v = row[key];
        const td = make("td", v === undefined || v === null ? "" : format ? format(v) : String(v), format ? "number" : "");
        if (row.bad && row.bad.includes(key)) td.classList.add("bad");
        if (!format) td.title = td.textContent;
        tr.append(td);
      }
      all.append(tr);
    }
    this.body.replaceChildren(all);
  }
}

// Loops. A new field of loopView (update.go) gets its column here.
const loops = new Table(element("loops"), [
  ["loop", "id", count], ["state", "note"], ["delay of a post", "delay", span], ["open", "open", count],
  ["accepted/s", "accepted", rate], ["closed/s", "closed", rate], ["refused", "refused", count],
  ["turns/s", "turns", rate], ["receives/s", "receives", rate], ["sends/s", "sends", rate],
  ["in", "in", byteRate], ["out", "out", byteRate], ["TLS handshakes/s", "tls", rate], ["TLS failed", "tlsFailed", count], ["filters failed", "failed", count], ["buffers", "buffers", bytes], ["panics", "panics", count],
  ["all in", "allIn", bytes], ["all out", "allOut", bytes], ["datagrams in/s", "packetsIn", rate], ["out/s", "packetsOut", rate],
], { order: "id" });

function loopRow(loop, before, seconds) {
  const now = loop.stats, was = before && before.stats;
  const per = (field) => was && seconds > 0 ? Math.max(0, now[field] - was[field]) / seconds : undefined;
  return {
    id: loop.id, delay: loop.delay, open: now.Open, accepted: per("Accepted"), closed: per("Closed"), refused: now.Refused,
    turns: per("Turns"), receives: per("Receives"), sends: per("Sends"), in: per("BytesIn"), out: per("BytesOut"),
    allIn: now.BytesIn, allOut: now.BytesOut, packetsIn: per("PacketsIn"), packetsOut: per("PacketsOut"),
    tls: was && seconds > 0 ? Math.max(0, loop.tls - before.tls) / seconds : undefined, tlsFailed: loop.tlsFailed, buffers: loop.buffers,
    failed: now.FiltersFailed, panics: now.Panics, note: loop.ended ? "ended" : loop.blocked ? "blocked" : "works",
    bad: [...(loop.blocked ? ["delay", "note"] : []), ...(now.Panics > 0 ? ["panics"] : [])],
  };
}

// Histograms. The server tells how many numbers are in each of twelve ranges.
const times = new Table(element("times"), [
  ["loop", "loop", count], ["what", "what"], ["per second", "rate", rate], ["share of time", "share", (n) => n], ["median", "p50", (n) => n],
  ["99 %", "p99", (n) => n], ["99.9 %", "p999", (n) => n], ["longest", "max", (n) => n], ["distribution", "bars"],
], { keys: ["loop", "what"] });

function bars(counts) {
  const most = Math.max(...counts), blocks = "▁▂▃▄▅▆▇█";
  return most === 0 ? "" : counts.map((n) => n === 0 ? "·" : blocks[Math.min(7, Math.floor(8 * Math.sqrt(n / most)))]).join("");
}

function showTimes(all, seconds) {
  const rows = [];
  for (const loop of all) {
    for (const m of loop.measures) {
      const text = (n) => m.count === 0 ? "" : m.name.startsWith("events") ? count(n) : span(n);
      rows.push({
        loop: loop.id, what: m.name, rate: seconds > 0 ? m.count / seconds : undefined,
        share: m.name === "turns" && seconds > 0 ? (100 * m.sum / seconds).toFixed(1) + " %" : "",
        p50: text(m.p50), p99: text(m.p99), p999: text(m.p999), max: text(m.max), bars: bars(m.bars),
      });
    }
  }
  times.show(rows);
}

function showTotals(u, row) {
  const all = [
    ["connections", count(u.total.Open)], ["accepted/s", rate(row.accepted)], ["received", byteRate(row.in)], ["sent", byteRate(row.out)],
    ["backend", u.backend], ["goroutines", count(u.process.goroutines)], ["processors", count(u.process.processors)],
    ["heap", bytes(u.process.heap)], ["memory of Go", bytes(u.process.memory)], ["garbage collections", count(u.process.gcCycles)],
  ];
  element("totals").replaceChildren(...all.map(([name, value]) => {
    const div = make("div");
    div.append(make("dt", name), make("dd", value || "–"));
    return div;
  }));
}

// Sections of the program. Their tables stay, so that they keep their order.
const sections = new Map();

function showSections(list) {
  list.forEach((s, i) => {
    if (!sections.has(i)) {
      const box = make("section"), note = make("p", "", "note"), inner = make("div");
      box.append(make("h2", s.name), note, inner);
      element("sections").append(box);
      sections.set(i, { note, inner, tables: new Map() });
    }
    const { note, inner, tables } = sections.get(i);
    const old = Date.now() - Date.parse(s.at) > 5000;
    const read = !s.at.startsWith("0001");
    note.textContent = s.error ? s.error : !read ? "no answer yet" : old ? "no answer; as of " + new Date(s.at).toLocaleTimeString() : "";
    (s.tables || []).forEach((t, n) => {
      const shape = JSON.stringify([t.name, t.columns]);
      let shown = tables.get(n);
      if (!shown || shown.shape !== shape) {
        const box = make("div"), place = make("div", undefined, "table"), more = make("p", "", "note");
        if (t.name) box.append(make("h3", t.name));
        box.append(place, more);
        if (shown) shown.box.replaceWith(box); else inner.append(box);
        const isNumber = (c) => t.rows.length > 0 && t.rows.every((row) => typeof row[c] === "number");
        shown = { shape, box, more, table: new Table(place, t.columns.map((title, c) => [title, c.toString(), isNumber(c) ? count : undefined])) };
        if (t.rows.length > 0) tables.set(n, shown); else tables.set(n, { ...shown, shape: "" }); // kinds of cells are not known yet
      }
      shown.table.show(t.rows.map((row) => Object.fromEntries(row.map((v, c) => [c.toString(), v]))));
      shown.more.textContent = t.more > 0 ? "and " + count(t.more) + " more" : "";
    });
    for (const n of [...tables.keys()]) {
      if (n >= (s.tables || []).length) { tables.get(n).box.remove(); tables.delete(n); }
    }
  });
}

// Slow callbacks.
let slowNews = 0;

async function showSlow(news) {
  if (news === slowNews) return;
  slowNews = news;
  const calls = await (await fetch("slow")).json();
  const open = new Set([...element("slow").querySelectorAll("details[open]")].map((d) => d.dataset.number));
  element("slow").replaceChildren(...calls.map((c) => {
    const d = make("details"), where = c.func ? c.func + " (" + c.file + ":" + c.line + ")" : "unknown place";
    d.dataset.number = c.number;
    d.open = open.has(String(c.number));
    const line = new Date(c.at).toLocaleTimeString() + "  loop " + c.loop + (c.remote ? "  " + c.remote : "") + "  " + span(c.seconds) +
      (c.over ? "  " : " so far  ") + (c.coroutine ? "coroutine  " : "") + (c.state ? c.state + "  " : "") + where;
    d.append(make("summary", line, c.over ? "" : "bad"), make("p", c.advice, "note"), make("pre", c.stack));
    if (c.unreported > 0) d.append(make("p", count(c.unreported) + " others before it are not listed", "note"));
    return d;
  }));
}

// Connections. The server sorts, since it does not send all of them.
let listing = false, listedAt = 0;
const conns = new Table(element("conns"), [
  ["loop", "loop", count], ["peer", "remote"], ["age", "age", span], ["idle", "idle", span], ["bytes in", "in", bytes], ["bytes out", "out", bytes],
  ["waiting out", "unsent", bytes], ["waiting in", "input", bytes], ["handler ← filters", "handler"], ["state", "state"],
], { order: "-age", keys: ["loop", "age", "idle", "in", "out", "unsent", "input", "handler", "state"], sorted: () => list(true) });

async function list(now) {
  if (listing || (!now && (element("hold").checked || Date.now() - listedAt < 1900))) return;
  listing = true;
  const order = conns.order, rows = element("rows").value;
  try {
    const answer = await fetch("conns?sort=" + encodeURIComponent(order) + "&rows=" + rows);
    if (!answer.ok) return;
    const l = await answer.json();
    listedAt = Date.now();
    conns.show(l.rows);
    element("shown").textContent = "the first " + count(l.rows.length) + " of " + count(l.total) + " at " + new Date(l.at).toLocaleTimeString() +
      (l.missing.length > 0 ? "; without those of loops " + l.missing.join(", ") + ", which do not answer" : "");
    element("conns").dataset.order = l.sort;
  } catch {
    // the server has gone: the stream tells
  } finally {
    listing = false;
  }
  if (conns.order !== order || element("rows").value !== rows) list(true); // chosen meanwhile
}
element("rows").onchange = () => list(true);

// Updates.
let last = null, source = null;

function update(u) {
  const seconds = last ? (Date.parse(u.at) - Date.parse(last.at)) / 1000 : 0;
  showTotals(u, loopRow({ id: -1, stats: u.total }, last && { stats: last.total }, seconds));
  loops.show(u.loops.map((loop, i) => loopRow(loop, last && last.loops[i], seconds)));
  showTimes(u.loops, seconds);
  showSections(u.sections);
  showSlow(u.slowReports).catch(() => { slowNews = 0; });
  list(false);
  element("status").textContent = "at " + new Date(u.at).toLocaleTimeString();
  element("status").className = "";
  last = u;
}

function connect() {
  const mine = source = new EventSource("events");
  mine.onmessage = (event) => update(JSON.parse(event.data));
  mine.onerror = () => {
    element("status").textContent = "the server does not answer";
    element("status").className = "bad";
    last = null;
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (source === mine) connect(); }, 3000);
  };
}

// A page that nobody sees costs the server nothing.
document.addEventListener("visibilitychange", () => {
  if (source) source.close();
  source = null;
  if (!document.hidden) { last = null; connect(); }
});
connect();
