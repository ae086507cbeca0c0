// The report: what lies under the pointer in the maps of progress, and the timeline.
(() => {
  "use strict";
  const data = (id) => {
    const node = document.getElementById(id);
    return node ? JSON.parse(node.textContent) : null;
  };
  const make = (name, attributes, text) => {
    const node = document.createElementNS(document.querySelector("svg").namespaceURI, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const at = (svg, event) => {
    const point = svg.createSVGPoint();
    point.x = event.clientX;
    point.y = event.clientY;
    return point.matrixTransform(svg.getScreenCTM().inverse());
  };

  // ------------------------------------------------------------------------------------------------ progress
  const maps = data("map-data");
  if (maps) {
    const told = document.getElementById("map-told");
    const place = (rank) => {
      const column = rank % maps.columns;
      return [maps.left + column * maps.cell + Math.floor(column / maps.group) * maps.gap, Math.floor(rank / maps.columns) * (maps.height + 2)];
    };
    const rankAt = (p) => {
      const row = Math.floor(p.y / (maps.height + 2));
      const width = maps.group * maps.cell + maps.gap;
      const group = Math.floor((p.x - maps.left) / width);
      const inside = Math.floor((p.x - maps.left - group * width) / maps.cell);
      if (row < 0 || group < 0 || inside < 0 || inside >= maps.group) return -1;
      const column = group * maps.group + inside;
      return column < maps.columns ? row * maps.columns + column : -1;
    };
    for (const svg of document.querySelectorAll("svg.map")) {
      const states = maps.maps[svg.dataset.map];
      let current = -1;
      const cursor = make("rect", {class: "cursor", width: maps.cell, height: maps.height + 2, visibility: "hidden"});
      svg.append(cursor);
      const go = (rank) => {
        if (rank < 0 || rank >= maps.ranks || states[rank] === -2) return;
        current = rank;
        const [x, y] = place(rank);
        cursor.setAttribute("x", x - 1);
        cursor.setAttribute("y", y - 1);
        cursor.setAttribute("visibility", "visible");
        const host = maps.host[rank] < 0 ? "" : " on " + maps.hosts[maps.host[rank]];
        told.textContent = `rank ${rank}${host}: ${states[rank] < 0 ? "no state" : maps.texts[states[rank]]}`;
      };
      svg.addEventListener("pointermove", (event) => go(rankAt(at(svg, event))));
      svg.addEventListener("focus", () => { if (current < 0) go(states.findIndex((s) => s !== -2)); });
      svg.addEventListener("keydown", (event) => {
        const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: maps.columns, ArrowUp: -maps.columns};
        if (event.key === "Home") go(states.findIndex((s) => s !== -2));
        else if (event.key === "End") go(states.findLastIndex((s) => s !== -2));
        else if (event.key in steps) {
          // Ranks that are not in these communicators are passed over.
          let next = current + steps[event.key];
          while (next >= 0 && next < maps.ranks && states[next] === -2) next += steps[event.key];
          go(next);
        } else return;
        event.preventDefault();
      });
    }
  }

  // ------------------------------------------------------------------------------------------------ timeline
  const line = data("tl-data");
  if (!line) return;
  const svg = document.getElementById("tl"), told = document.getElementById("tl-told"), input = document.getElementById("tl-ranks");
  const WIDTH = 1040, LEFT = 118, RIGHT = 12, TOP = 26, ROW = 22, MOST = 32;
  const byRank = new Map(line.ranks.map((r) => [r.r, r]));
  const accused = new Set(line.accused);
  const zero = line.stall >= 0 ? line.stall : 0;
  let lanes = [], tops = [], from = 0, to = 1, chosen = null;

  // "5", "0-3", "0-60/4", "1,2"; what is not there is passed over.
  const parse = (text) => {
    const ranks = [];
    for (const part of text.split(",")) {
      const m = /^\s*(\d{1,7})(?:-(\d{1,7})(?:\/(\d{1,5}))?)?\s*$/.exec(part);
      if (!m) continue;
      const last = m[2] === undefined ? +m[1] : Math.min(+m[2], +m[1] + 100000), step = Math.max(1, +(m[3] || 1));
      for (let r = +m[1]; r <= last && ranks.length < MOST; r += step) if (byRank.has(r) && !ranks.includes(r)) ranks.push(r);
    }
    return ranks.slice(0, MOST);
  };
  const newest = (lane, i) => Math.max(lane.e[i], lane.q[i], lane.s[i], lane.d[i]);
  const ends = (lane, i) => (lane.d[i] >= 0 ? lane.d[i] : lane.k[i] === 1 ? Infinity : newest(lane, i));
  const time = (us) => {
    if (us === 0) return "0";
    const a = Math.abs(us), sign = us < 0 ? "−" : "";
    if (a >= 1e6) return `${sign}${+(a / 1e6).toPrecision(4)} s`;
    return a >= 1e3 ? `${sign}${+(a / 1e3).toPrecision(4)} ms` : `${sign}${+a.toPrecision(3)} µs`;
  };
  const x = (us) => LEFT + (us - from) / (to - from) * (WIDTH - LEFT - RIGHT);
  const clamp = (us) => Math.min(WIDTH - RIGHT, Math.max(LEFT, us === Infinity ? WIDTH - RIGHT : x(us)));
  const everything = () => {
    let a = Infinity, b = 0;
    for (const lane of lanes) {
      for (let i = 0; i < lane.e.length; ++i) { a = Math.min(a, lane.e[i]); b = Math.max(b, newest(lane, i)); }
      b = Math.max(b, lane.end);
    }
    return a < b ? [a, b] : [0, 1000];
  };
  const view = (a, b) => {
    const [first, last] = everything(), most = Math.max(1000, (last - first) * 1.1);
    const width = Math.min(Math.max(b - a, 5), most);
    const middle = (a + b) / 2;
    from = Math.min(Math.max(middle - width / 2, first - most * 0.05), last + most * 0.05 - width);
    to = from + width;
    draw();
  };
  // The last few operations and a little after: what follows is the stall.
  const lastOperations = () => {
    const begins = [], news = [];
    for (const lane of lanes) {
      const n = lane.e.length;
      if (n) begins.push(lane.e[Math.max(0, n - 6)]);
      for (let i = Math.max(0, n - 6); i < n; ++i) news.push(newest(lane, i));
    }
    if (!news.length) return view(...everything());
    begins.sort((a, b) => a - b);
    const a = begins[Math.floor(begins.length / 2)], b = Math.max(...news);
    view(a - (b - a) * 0.04, b + Math.max(20, (b - a) * 0.35));
  };
  const describe = (lane, i) => {
    const parts = [`rank ${lane.r} on ${lane.h}: #${lane.n[i]} ${line.words[lane.w[i]]} in ${line.labels[lane.c[i]]}`, `called ${time(lane.e[i] - zero)}`];
    if (lane.q[i] >= 0) parts.push(`in the stream ${time(lane.q[i] - zero)}`);
    if (lane.s[i] >= 0) parts.push(`started ${time(lane.s[i] - zero)}`);
    if (lane.d[i] >= 0) parts.push(`finished ${time(lane.d[i] - zero)}${lane.s[i] >= 0 ? `, ran ${time(lane.d[i] - lane.s[i])}` : ""}`);
    else if (lane.k[i] === 1) parts.push(`not finished at the end, ${time(lane.end - lane.e[i])} after the call`);
    else parts.push("end not visible");
    return parts.join("; ");
  };
  const choose = (laneIndex, i, bringIn) => {
    const lane = lanes[laneIndex];
    if (!lane || i < 0 || i >= lane.e.length) return;
    chosen = [laneIndex, i];
    told.textContent = describe(lane, i);
    if (bringIn && (lane.e[i] < from || lane.e[i] > to)) view(lane.e[i] - (to - from) / 2, lane.e[i] + (to - from) / 2);
    else mark();
  };
  const mark = () => {
    for (const node of svg.querySelectorAll(".chosen")) node.classList.remove("chosen");
    if (chosen) svg.querySelector(`[data-op="${chosen[0]}-${chosen[1]}"]`)?.classList.add("chosen");
  };
  const step = (width) => {
    const raw = width / 7, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw);
  };
  const ticks = () => {
    const s = step(to - from);
    const first = Math.ceil((from - zero) / s);
    for (let k = first; k < first + 16 && k * s <= to - zero; ++k) {
      const t = k * s;
      const px = x(t + zero);
      svg.append(make("path", {class: "grid", d: `M${px.toFixed(1)} ${TOP}V${tops[lanes.length]}`}),
                 make("text", {x: px.toFixed(1), y: 14, class: "note"}, time(Math.round(t * 1000) / 1000)));
    }
  };
  const bar = (group, a, b, y, h, classes) => {
    const left = clamp(a), right = clamp(b);
    if (right < left || (a !== Infinity && x(a) > WIDTH - RIGHT) || (b !== Infinity && x(b) < LEFT)) return 0;
    group.append(make("rect", {class: classes, x: left.toFixed(1), y, width: Math.max(1.5, right - left).toFixed(1), height: h}));
    return right - left;
  };
  const operation = (lane, index, i, top, row) => {
    const end = ends(lane, i), open = lane.k[i] === 1;
    if (end < from || lane.e[i] > to) return;
    const group = make("g", {"data-op": `${index}-${i}`, class: "op"});
    const y = top + 5 + row * ROW, called = lane.q[i] >= 0 ? lane.q[i] : lane.s[i] >= 0 ? lane.s[i] : open ? Infinity : lane.e[i];
    bar(group, lane.e[i], called, y, 4, "tl-host");
    let wide = 0;
    if (lane.q[i] >= 0) bar(group, lane.q[i], lane.s[i] >= 0 ? lane.s[i] : open ? Infinity : lane.q[i], y, 4, "tl-queued" + (open && lane.s[i] < 0 ? " tl-openline" : ""));
    if (lane.s[i] >= 0) wide = bar(group, lane.s[i], end, y + 5, 14, open ? "tl-open" : "tl-ran");
    const label = `#${lane.n[i]} ${line.words[lane.w[i]]}` + (open ? `, open ${time(lane.end - lane.e[i])}` : "");
    const begin = clamp(lane.s[i] >= 0 ? lane.s[i] : lane.e[i]);
    if (wide > 30 && (wide > label.length * 6.2 || !open)) {
      const short = wide > label.length * 6.2 ? label : wide > 34 ? `#${lane.n[i]}` : "";
      if (short) group.append(make("text", {x: (begin + 4).toFixed(1), y: y + 16, class: "tl-label start"}, short));
    }
    group.append(make("title", {}, describe(lane, i)));
    svg.append(group);
  };
  const draw = () => {
    svg.replaceChildren();
    const height = tops[lanes.length] + 6;
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    svg.style.height = "auto";
    lanes.forEach((lane, index) => {
      svg.append(make("rect", {class: "tl-lane" + (index % 2 ? " odd" : ""), x: 0, y: tops[index], width: WIDTH, height: tops[index + 1] - tops[index]}));
    });
    ticks();
    lanes.forEach((lane, index) => {
      const top = tops[index], bottom = tops[index + 1];
      svg.append(make("text", {x: 8, y: top + 18, class: "start tl-rank" + (accused.has(lane.r) ? " alarm" : "")}, `rank ${lane.r}`),
                 make("text", {x: 8, y: top + 33, class: "start note"}, lane.h.length > 15 ? lane.h.slice(0, 14) + "…" : lane.h));
      for (let i = 0; i < lane.e.length; ++i) operation(lane, index, i, top, Math.max(0, lane.rows.indexOf(lane.c[i])));
      for (const [text, since] of lane.calls) {
        const group = make("g", {class: "op"});
        const wide = bar(group, since, Infinity, bottom - 14, 11, "tl-call");
        if (wide > text.length * 6.2) group.append(make("text", {x: (clamp(since) + 4).toFixed(1), y: bottom - 5, class: "tl-label start"}, text));
        group.append(make("title", {}, `rank ${lane.r}: ${text} since ${time(since - zero)}`));
        svg.append(group);
      }
      if (lane.end >= from && lane.end <= to)
        svg.append(make("path", {class: "tl-end", d: `M${x(lane.end).toFixed(1)} ${top + 3}V${bottom - 3}`}));
    });
    if (line.stall >= from && line.stall <= to) {
      const px = x(line.stall).toFixed(1);
      svg.append(make("path", {class: "tl-stall", d: `M${px} ${TOP - 4}V${tops[lanes.length]}`}));
    }
    mark();
  };
  const show = (text) => {
    lanes = parse(text).map((r) => byRank.get(r));
    chosen = null;
    tops = [TOP];
    for (const lane of lanes) {
      // A row for each communicator, three at most; then the calls.
      lane.rows = [...new Set(lane.c)].slice(-3);
      tops.push(tops[tops.length - 1] + Math.max(42, 8 + lane.rows.length * ROW + (lane.calls.length ? 16 : 0)));
    }
    told.textContent = lanes.length ? `${lanes.length} of ${line.ranks.length} ranks` : "No such rank has a record; for example 0-3,5";
    lastOperations();
  };
  const zoom = (factor, middle) => {
    const m = middle === undefined ? (chosen ? Math.min(Math.max(lanes[chosen[0]].e[chosen[1]], from), to) : (from + to) / 2) : middle;
    view(m - (m - from) * factor, m + (to - m) * factor);
  };
  const move = (part) => view(from + (to - from) * part, to + (to - from) * part);

  input.addEventListener("change", () => show(input.value));
  document.getElementById("tl-in").addEventListener("click", () => zoom(0.5));
  document.getElementById("tl-out").addEventListener("click", () => zoom(2));
  document.getElementById("tl-last").addEventListener("click", lastOperations);
  document.getElementById("tl-all").addEventListener("click", () => view(...everything()));
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;  // a page is scrolled
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, from + (at(svg, event).x - LEFT) / (WIDTH - LEFT - RIGHT) * (to - from));
  }, {passive: false});
  svg.addEventListener("dblclick", (event) => zoom(0.4, from + (at(svg, event).x - LEFT) / (WIDTH - LEFT - RIGHT) * (to - from)));
  let drag = null;
  svg.addEventListener("pointerdown", (event) => { drag = {x: at(svg, event).x, from, to}; });
  addEventListener("pointerup", () => { drag = null; });
  svg.addEventListener("pointermove", (event) => {
    const p = at(svg, event);
    if (drag && event.buttons & 1) {
      const by = (drag.x - p.x) / (WIDTH - LEFT - RIGHT) * (drag.to - drag.from);
      return view(drag.from + by, drag.to + by);
    }
    const group = event.target.closest("[data-op]");
    if (group) choose(...group.dataset.op.split("-").map(Number), false);
  });
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const [laneIndex, i] = chosen || [0, -1];
    const lane = lanes[laneIndex];
    const keys = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => view(...everything()),
      ArrowRight: () => event.shiftKey ? move(0.2) : choose(laneIndex, i + 1, true),
      ArrowLeft: () => event.shiftKey ? move(-0.2) : choose(laneIndex, i < 0 ? lane.e.length - 1 : i - 1, true),
      Home: () => choose(laneIndex, 0, true), End: () => choose(laneIndex, lane.e.length - 1, true),
      ArrowDown: () => other(1), ArrowUp: () => other(-1),
    };
    const other = (by) => {
      const next = lanes[laneIndex + by];
      if (!next) return;
      // The same operation there, else the last one.
      const same = next.e.findIndex((_, k) => i >= 0 && next.n[k] === lane.n[i] && next.c[k] === lane.c[i]);
      choose(laneIndex + by, same >= 0 ? same : next.e.length - 1, true);
    };
    if (!(event.key in keys) || !lane) return;
    event.preventDefault();
    keys[event.key]();
  });
  input.value = line.chosen;
  show(line.chosen);
})();
