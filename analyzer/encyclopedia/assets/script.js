'use strict';
(() => {
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const say = (text) => { $('#said').textContent = text; };
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}
// Storage may be refused.
const kept = {
  get(name) { try { return sessionStorage.getItem('ringscope.' + name) || ''; } catch { return ''; } },
  set(name, value) { try { sessionStorage.setItem('ringscope.' + name, value); } catch { /* then it is not kept */ } },
};

// ---- {host} and the like, filled in by the reader, for the commands of a page
const blanks = $$('var[data-fill]');
const form = $('#fill');
if (form && blanks.length) {
  const names = [...new Set(blanks.map((blank) => blank.dataset.fill))];
  form.append(make('span', {}, 'Fill in the commands below:'));
  const apply = (name, value) => {
    for (const blank of blanks) {
      if (blank.dataset.fill !== name) continue;
      blank.textContent = value || '{' + name + '}';
      blank.classList.toggle('filled', value !== '');
    }
  };
  for (const name of names) {
    const input = make('input', { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', size: '12', placeholder: '{' + name + '}' });
    input.value = kept.get(name);
    apply(name, input.value);
    input.addEventListener('input', () => { kept.set(name, input.value.trim()); apply(name, input.value.trim()); });
    form.append(make('label', {}, name + ' ', input));
  }
  form.hidden = false;
  form.addEventListener('submit', (event) => event.preventDefault());
}

// ---- copy buttons
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make('textarea', { readonly: '', class: 'hidden' });
    area.value = text;
    document.body.append(area);
    area.select();
    let done = false;
    try { done = document.execCommand('copy'); } catch { /* no way to copy here */ }
    area.remove();
    return done;
  }
}
for (const block of $$('.copy')) {
  const button = make('button', { type: 'button', 'aria-label': 'Copy this command' }, 'Copy');
  button.addEventListener('click', async () => {
    const done = await copy($('code', block).textContent);
    button.textContent = done ? 'Copied' : 'Select it';
    say(done ? 'Copied' : 'Copying is not allowed here');
    if (done) button.focus();
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  block.append(button);
}

// ---- '/' goes to the search, here or on the index
const box = $('#q');
const typing = (element) => element && /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || typing(document.activeElement)) return;
  event.preventDefault();
  if (box) { box.focus(); box.select(); } else location.href = 'index.html#q=';
});

// ---- rows of a table
if (box && box.type === 'search') {
  $('.narrow').hidden = false;
  const rows = $$('main tbody tr').map((row) => ({ row, text: row.textContent.toLowerCase() }));
  box.addEventListener('input', () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    for (const table of $$('main table')) {
      const empty = !$$('tbody tr', table).some((row) => !row.hidden);
      table.hidden = empty;
      if (table.previousElementSibling?.tagName === 'H2') table.previousElementSibling.hidden = empty;
    }
    say(shown + ' rows');
  });
  box.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { box.value = ''; box.dispatchEvent(new Event('input')); }
  });
}

// ---- the index
const data = $('#data') && JSON.parse($('#data').textContent);
if (!data) return;
const MOST = 12, LONGEST_LINE = 4000, MOST_LINES = 400;
const byId = new Map(data.entries.map((entry) => [entry.id, entry]));
const wordsOf = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) || []);
for (const entry of data.entries) {
  entry.nameWords = wordsOf(entry.name);
  entry.textWords = wordsOf(entry.text);
}
function compiled(patterns) {
  const all = [];
  for (const pattern of patterns) {
    const space = pattern.indexOf(' ');
    // A browser that does not know a construct goes without that pattern.
    try { all.push(new RegExp(pattern.slice(space + 1), pattern.slice(0, space))); } catch { /* not matched here */ }
  }
  return all;
}
let ready = false;
function prepare() {
  if (ready) return;
  for (const line of data.lines) line.tests = compiled(line.patterns);
  for (const entry of data.entries) entry.tests = compiled(entry.lines);
  ready = true;
}
// What launchers and NCCL put in front, for patterns that begin at the message.
function variants(line) {
  const cut = line.replace(/\x1b\[[0-9;]*m/g, '').slice(0, LONGEST_LINE).trimEnd();
  const all = [cut];
  const message = cut.match(/NCCL (?:WARN|INFO|TRACE) (.*)$/);
  if (message) all.push(message[1]);
  const tagged = cut.match(/^(?:\[[^\]]*\]\s*)?(?:\[?[\w.,-]+\]?(?:<std\w+>)?:\s*)(.*)$/);
  if (tagged) all.push(tagged[1]);
  return all;
}

// Results: {title, href, id?, note?, text, kind}, best first.
function ofRows(kind, key, found) {
  for (const row of data.rows) {
    if (row.kind === kind && row.key === key) {
      found.rows.push(row);
      for (const id of row.causes) found.ids.add(id);
    }
  }
}
function ofLines(text, found) {
  prepare();
  for (const raw of text.split('\n').slice(0, MOST_LINES)) {
    if (raw.trim().length < 8) continue;
    const xid = raw.match(/\b(S?Xid) \((?:PCI:)?[0-9a-fA-F:.]+[^)]*\): (\d+)/);
    if (xid) ofRows(xid[1].toLowerCase(), xid[2], found);
    const status = raw.match(/Got completion .*?with (?:error |status[= ])(?:[A-Z_]+\()?(\d+)/);
    if (status) ofRows('status', status[1], found);
    const texts = variants(raw);
    for (const line of data.lines) {
      if (found.lines.has(line) || !line.tests.some((test) => texts.some((t) => test.test(t)))) continue;
      found.lines.add(line);
      for (const id of line.causes) found.ids.add(id);
    }
    for (const entry of data.entries) {
      if (entry.tests.some((test) => texts.some((t) => test.test(t)))) found.ids.add(entry.id);
    }
  }
}
function ofWords(text) {
  const scores = new Map();
  let sought = 0;
  const held = new Map();
  for (const word of wordsOf(text)) {
    let holders = data.entries.filter((e) => e.nameWords.has(word) || e.textWords.has(word));
    let weight = 1;
    if (!holders.length) {  // half a word: what begins with it
      weight = 0.6;
      const begins = (set) => [...set].some((w) => w.startsWith(word));
      holders = data.entries.filter((e) => begins(e.nameWords) || begins(e.textWords));
    }
    const common = 2 * holders.length > data.entries.length;
    if (common) holders = holders.filter((e) => e.nameWords.has(word));
    else sought += 1;
    for (const entry of holders) {
      const rare = Math.log((data.entries.length + 1) / holders.length);
      const named = [...entry.nameWords].some((w) => w.startsWith(word));
      scores.set(entry.id, (scores.get(entry.id) || 0) + weight * rare * (named ? 3 : 1));
      if (!common) held.set(entry.id, (held.get(entry.id) || 0) + 1);
    }
  }
  return [...scores].filter(([id]) => 2 * (held.get(id) || 0) >= sought).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([id]) => id);
}
function search(text) {
  const found = { rows: [], lines: new Set(), ids: new Set() };
  const one = text.trim();
  const id = one.toUpperCase();
  for (const entry of data.entries) if (/^[A-Z]+-?[A-Z0-9]*$/.test(id) && entry.id.startsWith(id)) found.ids.add(entry.id);
  const number = one.match(/^(?:(s?xid|status|cuda(?: error)?|error|ncclresult|result)?[\s:=#]*)(\d{1,5})$/i);
  if (number) {
    const kind = (number[1] || '').toLowerCase();
    const kinds = kind.startsWith('cuda') ? ['cuda'] : kind.endsWith('result') ? ['result'] : kind === 'error' ? ['status', 'cuda', 'result']
      : kind ? [kind] : ['xid', 'status', 'cuda', 'result', 'sxid'];
    for (const k of kinds) ofRows(k, number[2], found);
  }
  const upper = one.toUpperCase();
  if (/^[A-Z]+_[A-Z0-9_]*(=.*)?$/.test(upper)) {
    const name = upper.split('=')[0];
    for (const row of data.rows) if (row.kind === 'variable' && row.key.startsWith(name)) { found.rows.push(row); row.causes.forEach((c) => found.ids.add(c)); }
  }
  for (const row of data.rows) if (row.kind !== 'variable' && row.label.toUpperCase().split(' ').includes(upper) && !/^\d+$/.test(upper)) {
    found.rows.push(row);
    row.causes.forEach((c) => found.ids.add(c));
  }
  if (one.length >= 8) ofLines(text, found);
  found.exact = found.ids.size > 0;
  if (!found.exact && !found.rows.length && !found.lines.size) for (const each of ofWords(text)) found.ids.add(each);
  return found;
}

// ---- filters
const chosen = { layer: new Set(), tag: new Set() };
const chips = $$('.chip');
const passes = (entry) => (!chosen.layer.size || chosen.layer.has(entry.layer)) && [...chosen.tag].every((tag) => entry.tags.includes(tag));
$('#filters').hidden = false;

const results = $('#results'), list = $('#list'), none = $('#none');
function entryResult(entry) {
  return make('li', {}, make('a', { href: entry.id + '.html' }, make('span', { class: 'id' }, entry.id), ' ' + entry.name),
    make('p', {}, entry.answer));
}
function show() {
  const text = box.value;
  const searching = text.trim() !== '';
  list.hidden = searching;
  results.hidden = !searching;
  none.hidden = true;
  results.replaceChildren();
  if (!searching) {
    let any = false;
    for (const section of $$('.layer')) {
      let shown = false;
      for (const item of $$('li', section)) {
        item.hidden = !passes(byId.get(item.dataset.id));
        shown = shown || !item.hidden;
      }
      section.hidden = !shown;
      any = any || shown;
    }
    none.hidden = any;
    return;
  }
  const found = search(text);
  for (const line of found.lines) {
    if (line.role === 'context') continue;
    const heading = line.shown ? make('a', { href: 'errors.html#' + line.id }, line.id) : line.id;
    results.append(make('div', { class: 'known' }, make('p', {}, make('span', { class: 'badge role-' + line.role }, line.believe), ' ', heading),
      make('p', {}, line.shows), line.next ? make('p', { class: 'next' }, make('b', {}, 'Told apart by: '), line.next) : null));
  }
  if (found.rows.length) {
    const rows = make('ul', { class: 'entries' });
    for (const row of found.rows.slice(0, MOST)) rows.append(make('li', {}, make('a', { href: row.page }, row.label), make('p', {}, row.text)));
    results.append(rows);
  }
  const entries = [...found.ids].map((id) => byId.get(id)).filter((entry) => entry && passes(entry));
  const told = found.lines.size || found.rows.length;
  if (entries.length) {
    if (told) results.append(make('h2', {}, entries.length > 1 ? 'What it can come from' : 'What it comes from'));
    const items = make('ol', { class: 'entries' });
    for (const entry of entries.slice(0, MOST)) items.append(entryResult(entry));
    results.append(items);
  } else if (!told) {
    results.append(make('p', {}, 'Nothing fits. Fewer words, or one line that the failing rank printed first, may help; a whole log is read by ',
      make('code', {}, 'ringscope diagnose FILE'), '.'));
  }
  say(entries.length + ' entries');
}

function grow() {
  box.style.height = 'auto';
  box.style.height = box.scrollHeight + 4 + 'px';
}
function remember() {
  const parts = [];
  if (box.value.trim() && box.value.length <= 500) parts.push('q=' + encodeURIComponent(box.value));
  for (const kind of ['layer', 'tag']) for (const value of chosen[kind]) parts.push(kind + '=' + encodeURIComponent(value));
  try { history.replaceState(null, '', '#' + parts.join('&')); } catch { /* the address stays as it is */ }
}
function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  box.value = parts.get('q') || '';
  for (const kind of ['layer', 'tag']) chosen[kind] = new Set(parts.getAll(kind));
  for (const chip of chips) {
    const kind = chip.dataset.layer ? 'layer' : 'tag';
    chip.setAttribute('aria-pressed', String(chosen[kind].has(chip.dataset[kind])));
  }
  grow();
  show();
  if (parts.has('q')) box.focus();
}
for (const chip of chips) {
  const kind = chip.dataset.layer ? 'layer' : 'tag';
  chip.addEventListener('click', () => {
    const value = chip.dataset[kind];
    if (!chosen[kind].delete(value)) chosen[kind].add(value);
    chip.setAttribute('aria-pressed', String(chosen[kind].has(value)));
    remember();
    show();
  });
}
box.addEventListener('input', () => { grow(); remember(); show(); });
const links = () => $$('#results a, #list a').filter((link) => link.offsetParent !== null);
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const all = links();
  const at = all.indexOf(document.activeElement);
  const inBox = document.activeElement === box;
  const oneLine = !box.value.includes('\n');
  if (event.key === 'ArrowDown' && (at >= 0 || (inBox && oneLine)) && all[at + 1]) {
    event.preventDefault();
    all[at + 1].focus();
  } else if (event.key === 'ArrowUp' && at >= 0) {
    event.preventDefault();
    (all[at - 1] || box).focus();
  } else if (event.key === 'Enter' && inBox && !event.shiftKey) {
    event.preventDefault();
    // A pasted log: the entries count, not the lines that were recognised.
    const first = $('#results ol.entries a') || $('#results ul.entries a');
    const exact = $('#results ul.entries a');
    if (box.value.trim()) (first || exact)?.click();
  } else if (event.key === 'Escape') {
    box.value = '';
    grow(); remember(); show();
    box.focus();
  }
});
addEventListener('hashchange', recall);
recall();
})();
