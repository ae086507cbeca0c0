"""The pages of `ringscope explain --html` in a browser, opened as files: searching, keys, filters, copying, contrast, narrow screens, print, and
that the policy holds.

usage: encyclopedia.py RINGSCOPE [--shots DIR]      exit status 77: no Chromium here, skipped
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cdp

LINE = ("node7:4410:4420 [3] transport/net_ib.cc:1909 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<48812> with status=12 opcode=0 len=0 "
        "vendor err 129 (Recv)")
XID = "[90211.7] NVRM: Xid (PCI:0000:4e:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 09 (0x00000004 0x0 0x0 0x0 0x0 0x0)"
# WCAG 2: contrast of each text with what lies under it, at least 4.5 (3 for large text). Returns what has less.
CONTRAST = """(() => {
  const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || /^(SCRIPT|STYLE|NOSCRIPT)$/.test(element.tagName)) continue;
    if (!element.checkVisibility() || element.closest('.hidden, .skip')) continue;
    let under = element;
    while (under && parse(getComputedStyle(under).backgroundColor)[3] === 0) under = under.parentElement;
    const style = getComputedStyle(element);
    const a = light(parse(style.color)), b = light(parse(under ? getComputedStyle(under).backgroundColor : 'rgb(255,255,255)'));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.7 && style.fontWeight >= 600);
    seen += 1;
    if (ratio < (large ? 3 : 4.5)) poor.push(ratio.toFixed(2) + ' ' + element.tagName + '.' + element.className + ': ' + walker.currentNode.data.trim().slice(0, 30));
  }
  return { poor: [...new Set(poor)].slice(0, 10), seen };
})()"""


class Encyclopedia(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.above = tempfile.TemporaryDirectory()
        cls.folder = os.path.join(cls.above.name, "pages")
        subprocess.run([RINGSCOPE, "explain", "--html", cls.folder], check=True, capture_output=True)
        cls.browser = cdp.Browser(cdp.find())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.above.cleanup()

    def open(self, name, **how):
        page = self.browser.open(os.path.join(self.folder, name), **how)
        self.addCleanup(page.close)
        self.addCleanup(self.quiet, page)
        return page

    def quiet(self, page):
        self.assertEqual(page.complaints, [])
        self.assertEqual(page.foreign_requests, [])

    def results(self, page):
        return page.evaluate("[...document.querySelectorAll('#results ol.entries .id')].map((e) => e.textContent)")

    def search(self, page, text):
        page.press("Escape")  # empties the search and goes to it
        page.type(text)
        return self.results(page)

    def test_search_finds_what_people_have(self):
        page = self.open("index.html")
        for text, wanted in (("HW-01", "HW-01"), ("hw-05", "HW-05"), ("Xid 79", "HW-05"), ("xid79", "HW-05"), ("79", "HW-05"),
                             ("NCCL_IB_TIMEOUT", "NET-01"), ("status 12", "NET-02"), ("ncclRemoteError", "NET-02"), (XID, "HW-01"),
                             ("/dev/shm too small", "NC-08"), ("checkpoint on one rank", "FW-07"), ("throttl", "HW-08"),
                             ("(Worker pid=3) [1,2]<stdout>:" + LINE, "NET-02")):
            with self.subTest(text):
                self.assertIn(wanted, self.search(page, text)[:4])
        self.assertEqual(self.search(page, "HW-01"), ["HW-01"])
        self.assertEqual(self.search(page, "zzzz qqqq"), [])
        self.assertIn("Nothing fits", page.text("#results"))

    def test_a_pasted_line_says_what_it_shows(self):
        page = self.open("index.html")
        found = self.search(page, LINE)
        self.assertTrue({"NET-01", "NET-02", "NET-03"} <= set(found), found)
        self.assertIn("the peer did not acknowledge", page.text("#results"))
        self.assertIn("IBV_WC_RETRY_EXC_ERR", page.text("#results"))
        # Several lines, Windows ends, colours, a megabyte of noise.
        found = self.search(page, "step 12 loss 3.1\r\n\x1b[36m" + LINE + "\x1b[0m\r\n" + XID + "\r\n" + "x" * 1000000)
        self.assertTrue({"NET-02", "HW-01"} <= set(found), found)

    def test_every_line_of_the_tables_finds_itself(self):
        examples = self.open("errors.html").evaluate(
            "[...document.querySelectorAll('.lines tr[id]')].map((r) => [r.id, r.querySelector('code.log').textContent])")
        self.assertGreater(len(examples), 120)
        page = self.open("index.html")
        bad = page.evaluate("""(() => { const box = document.querySelector('#q'); const bad = [];
          for (const [id, line] of %s) { box.value = line; box.dispatchEvent(new Event('input'));
            if (![...document.querySelectorAll('.known a')].some((a) => a.getAttribute('href') === 'errors.html#' + id)) bad.push(id + ': ' + line); }
          return bad; })()""" % json.dumps(examples))
        self.assertEqual(bad, [])

    def test_every_pattern_is_one_for_the_browser_too(self):
        bad = self.open("index.html").evaluate("""(() => { const data = JSON.parse(document.querySelector('#data').textContent); const bad = [];
          for (const p of data.lines.flatMap((l) => l.patterns).concat(data.entries.flatMap((e) => e.lines))) {
            try { new RegExp(p.slice(p.indexOf(' ') + 1), p.slice(0, p.indexOf(' '))); } catch (e) { bad.push(String(e)); } }
          return bad; })()""")
        self.assertEqual(bad, [])

    def test_keys(self):
        page = self.open("index.html")
        page.press("/")
        self.assertEqual(page.evaluate("document.activeElement.id"), "q")
        self.assertEqual(page.evaluate("document.querySelector('#q').value"), "")
        page.type("nvlink")
        found = self.results(page)
        self.assertGreater(len(found), 3)
        focused = "document.activeElement.querySelector?.('.id')?.textContent ?? document.activeElement.id"
        page.press("ArrowDown")
        self.assertEqual(page.evaluate(focused), found[0])
        page.press("ArrowDown")
        page.press("ArrowDown")
        page.press("ArrowUp")
        self.assertEqual(page.evaluate(focused), found[1])
        page.press("ArrowUp")
        page.press("ArrowUp")
        self.assertEqual(page.evaluate(focused), "q")
        page.press("ArrowDown")
        page.press("Enter")
        page.wait_for(f"document.title.startsWith('{found[0]} ')")
        # '/' on another page leads back to the search.
        page.press("/")
        page.wait_for("document.activeElement?.id === 'q'")
        page.press("x")
        page.press("Backspace")
        page.type("UC-10")
        page.press("Enter")
        page.wait_for("document.title.startsWith('UC-10 ')")
        page = self.open("HW-01.html")
        page.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.className"), "skip")

    def test_a_search_can_be_linked_to(self):
        page = self.open("index.html#q=Xid%2074")
        self.assertIn("HW-01", self.results(page))
        page = self.open("index.html")
        self.search(page, "<b>bold</b> 100%")
        again = self.open("index.html" + page.evaluate("location.hash"))
        self.assertEqual(again.evaluate("document.querySelector('#q').value"), "<b>bold</b> 100%")
        self.assertEqual(again.evaluate("document.querySelectorAll('b b, #results b').length"), 0)

    def test_filters(self):
        page = self.open("index.html")
        shown = "[...document.querySelectorAll('#list li')].filter((l) => l.checkVisibility()).map((l) => l.dataset.id)"
        everything = page.evaluate(shown)
        self.assertGreater(len(everything), 50)
        page.click("[data-layer=hardware]")
        hardware = page.evaluate(shown)
        self.assertTrue(all(i.startswith(("HW-", "SEED-")) for i in hardware) and hardware)
        self.assertEqual(page.evaluate("document.querySelector('[data-layer=hardware]').ariaPressed"), "true")
        page.click("[data-tag=slow]")
        slow = page.evaluate(shown)
        self.assertTrue(0 < len(slow) < len(hardware) and set(slow) < set(hardware))
        page.press("/")
        page.type("nvlink")
        self.assertTrue(set(self.results(page)) <= set(slow) and self.results(page))
        page.press("Escape")
        page.click("[data-tag=slow]")
        page.click("[data-layer=hardware]")
        self.assertEqual(page.evaluate(shown), everything)
        page = self.open("UC-01.html")
        page.click(".badges a:nth-of-type(2)")
        page.wait_for("document.querySelectorAll('.chip[aria-pressed=true]').length === 1 && document.readyState === 'complete'")

    def test_rows_of_a_table_can_be_narrowed(self):
        page = self.open("xid.html")
        page.press("/")
        page.type("fallen bus")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('tbody tr')].filter((r) => r.checkVisibility()).map((r) => r.id)"), ["xid-79"])

    def test_commands_are_filled_in_and_copied(self):
        self.browser.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        page = self.open("HW-01.html")
        page.click("#fill input")
        page.type("node-7")
        self.assertNotIn("{host}", page.text("#confirm pre"))
        page.click("#confirm .copy button")
        page.wait_for("document.querySelector('#confirm .copy button').textContent === 'Copied'")
        self.assertEqual(page.evaluate("navigator.clipboard.readText()"), "ssh node-7 \"dmesg -T | grep -E 'Xid|SXid'\"")
        self.assertEqual(page.text("#said"), "Copied")
        page.go(os.path.join(self.folder, "HW-05.html"))
        self.assertIn("node-7", page.text("#confirm"))

    def test_the_policy_holds(self):
        page = self.browser.open(os.path.join(self.folder, "HW-01.html"))
        page.evaluate("""(() => { for (const text of ['window.owned = 1']) { const s = document.createElement('script'); s.textContent = text;
          document.body.append(s); } const i = document.createElement('img'); i.src = 'http://192.0.2.1/x.png'; document.body.append(i);
          document.body.setAttribute('onclick', 'window.owned = 1'); document.body.click(); })()""")
        self.assertFalse(page.evaluate("'owned' in window"))
        self.assertEqual(page.evaluate("fetch('http://192.0.2.1/').then(() => 'reached', () => 'refused')"), "refused")
        self.assertGreaterEqual(len(page.complaints), 3)
        page.close()

    def test_contrast_in_light_and_dark(self):
        for name in ("index.html", "errors.html", "xid.html", "variables.html", "completions.html", "HW-01.html", "SEED-A.html", "NC-11.html"):
            for dark in (False, True):
                with self.subTest(name, dark=dark):
                    page = self.open(name, dark=dark)
                    if name == "index.html":
                        self.search(page, LINE)
                    told = page.evaluate(CONTRAST)
                    self.assertGreater(told["seen"], 30)
                    self.assertEqual(told["poor"], [])

    def test_nothing_is_wider_than_a_phone(self):
        page = self.open("index.html", width=360, height=740)
        for name in sorted(os.listdir(self.folder)):
            page.go(os.path.join(self.folder, name))
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360, name)
        self.assertGreaterEqual(page.evaluate("Math.min(...[...document.querySelectorAll('main p, main li, main td')].filter((e) => e.checkVisibility())"
                                              ".map((e) => parseFloat(getComputedStyle(e).fontSize)))"), 12)

    def test_it_prints(self):
        page = self.open("HW-01.html")
        path = os.path.join(self.above.name, "page.pdf")
        pages = page.pdf(path)
        self.assertTrue(2 <= pages <= 9, pages)
        with open(path, "rb") as file:
            self.assertEqual(file.read(5), b"%PDF-")
        page.look(760, 1000, dark=True, media="print")
        for hidden in ("header", "aside", "#fill", ".copy button", ".turn", "footer"):
            self.assertFalse(page.evaluate(f"document.querySelector('{hidden}').checkVisibility()"), hidden)
        self.assertTrue(page.evaluate("document.querySelector('.copy code').checkVisibility()"))
        self.assertEqual(page.evaluate("getComputedStyle(document.body).color"), "rgb(0, 0, 0)")

    def test_it_can_be_read_without_script(self):
        page = self.open("index.html")
        page.send("Emulation.setScriptExecutionDisabled", value=True)
        page.send("Page.reload")
        page.wait_for("document.readyState === 'complete' && document.querySelector('#filters').hidden")
        self.assertGreater(page.evaluate("[...document.querySelectorAll('#list a')].filter((a) => a.checkVisibility()).length"), 50)
        self.assertIn("needs JavaScript", page.text("search"))


def shots(folder):
    """Pictures to look at: light, dark, a phone, print."""
    with tempfile.TemporaryDirectory() as above, cdp.Browser(cdp.find()) as browser:
        subprocess.run([RINGSCOPE, "explain", "--html", above + "/pages"], check=True, capture_output=True)
        for name in ("index", "HW-01", "SEED-A", "errors", "xid", "completions", "variables"):
            for kind, how in (("light", {}), ("dark", {"dark": True}), ("phone", {"width": 390, "height": 844, "scale": 2}),
                              ("print", {"width": 760, "height": 1075, "media": "print"})):
                page = browser.open(f"{above}/pages/{name}.html", **how)
                page.screenshot(os.path.join(folder, f"{name}-{kind}.png"), full=kind == "light")
                page.close()


if __name__ == "__main__":
    RINGSCOPE = os.path.abspath(sys.argv.pop(1))
    if cdp.find() is None:
        print("skipped: no Chromium in PATH (Debian: chromium), so pages were not opened")
        sys.exit(77)
    if len(sys.argv) == 3 and sys.argv[1] == "--shots":
        shots(sys.argv[2])
    else:
        unittest.main()
