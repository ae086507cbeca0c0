"""The report (`ringscope diagnose --html=FILE`) in a browser, of jobs run on the stand-ins: what it shows, that it can be used by keyboard,
that it loads nothing and runs nothing that a log or host name brings, that it prints.

usage: report.py BUILD_TREE [--shots DIR]           exit status 77: no Chromium here, skipped
With --shots the pictures of docs/pictures/ are taken instead.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cdp
import encyclopedia

SIM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "sim")
EVIL = "</script><img src=x onerror=\"window.pwned=1\">'\u202e\u2028<svg onload=window.pwned=1>"
PICTURES = (("lane_dies_then_fallback", "light"), ("dp_rank_absent_4x2", "dark"), ("edge_is_slow", "light"))  # docs/report.md
TREE, WORK = "", ""


def make(name, hostile):
    """Runs the scenario and writes its report; the file's path."""
    scenario, out = os.path.join(SIM, "scenarios", name + ".json"), os.path.join(WORK, name + ("-hostile" if hostile else ""))
    if hostile:
        with open(scenario, encoding="utf-8") as f:
            changed = json.load(f)
        changed["environment"] = {**changed.get("environment", {}), "RINGSCOPE_JOB": EVIL}
        scenario = out + ".json"
        with open(scenario, "w", encoding="utf-8") as f:
            json.dump(changed, f)
    subprocess.run([sys.executable, "-B", os.path.join(SIM, "run_scenario.py"), TREE, scenario, "--out", out], check=True, stdout=subprocess.DEVNULL)
    folders = [f for f in ("traces", "flight", "logs", "kernel", "nvidia-smi") if os.path.isdir(os.path.join(out, f))]
    if hostile:
        with open(os.path.join(out, "logs", "<img src=x onerror=window.pwned=1>'\u202e.log"), "w", encoding="utf-8") as f:
            f.write(f"before {EVIL}\nnode7:1:1 [0] transport/net_ib.cc:1909 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<48812> with status=12 "
                    f"opcode=0 len=0 vendor err 129 (Recv) {EVIL}\nafter {EVIL}\n")
    page = out + ".html"
    done = subprocess.run([os.path.join(TREE, "ringscope"), "diagnose", "--html=" + page, *folders], cwd=out, capture_output=True, text=True)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"diagnose: exit status {done.returncode}: {done.stderr}")
    return page


def make_all(wanted):
    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
        return dict(zip(wanted, pool.map(lambda w: make(*w), wanted)))


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = make_all([("lane_dies_then_fallback", False), ("dp_rank_absent_4x2", True)])
        cls.browser = cdp.Browser(cdp.find())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def open(self, name="lane_dies_then_fallback", hostile=False, **how):
        page = self.browser.open(self.pages[name, hostile], **how)
        self.addCleanup(page.close)
        return page

    def quiet(self, page):
        self.browser.pump(0.1)
        self.assertEqual([], page.complaints)
        self.assertEqual([], page.foreign_requests)

    def test_what_it_shows(self):
        page = self.open()
        top = page.text("#verdict")
        for part in ("HANG", "NVLink fault", "rank 6", "node1", "established", "HW-01", "Do this next", "It is fixed when", "nvidia-smi nvlink"):
            self.assertIn(part, top)
        # The verdict and the next step need no scrolling.
        self.assertLess(page.evaluate("document.querySelector('#verdict .command').getBoundingClientRect().bottom"), 900)
        self.assertEqual(["ring", "progress", "timeline", "counters", "evidence", "fabric", "findings", "catalogue", "inputs"],
                         page.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)"))
        self.assertIn("different algorithms", page.text("#ring"))
        self.assertEqual("6", page.evaluate("document.querySelector('#ring .node.accused text').textContent"))
        self.assertEqual(8, page.evaluate("document.querySelectorAll('#ring .node').length"))
        self.assertIn("recovery", page.text("#counters"))
        self.assertIn("Xid 74", page.text("#fabric"))
        self.assertEqual(18, page.evaluate("document.querySelectorAll('#fabric .lane.down').length"))
        cited = page.text("#evidence .cited")
        self.assertRegex(cited, r"^1\s*.*NVRM: Xid")
        self.assertEqual(page.evaluate("document.title"), "HANG: " + page.text("h1"))
        # Every link of the page leads somewhere in it.
        self.assertEqual([], page.evaluate("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))"
                                           ".filter((h) => h[0] !== '#' || !document.getElementById(h.slice(1)))"))
        self.quiet(page)

    def test_timeline(self):
        page = self.open()
        count = "document.querySelectorAll('#tl [data-op]').length"
        ticks = "[...document.querySelectorAll('#tl .note')].map((t) => t.textContent).join()"
        self.assertGreater(page.evaluate(count), 20)
        self.assertIn("open", page.evaluate("document.getElementById('tl').textContent"))
        before = page.evaluate(ticks)
        page.click("#tl-in")
        self.assertNotEqual(before, page.evaluate(ticks))
        page.click("#tl-last")
        self.assertEqual(before, page.evaluate(ticks))
        page.evaluate("document.getElementById('tl').focus()")
        page.press("End")
        self.assertRegex(page.text("#tl-told"), r"rank 0 on node0: #3 all-reduce in dp_after_checkpoint .*not finished at the end")
        page.press("ArrowLeft")
        self.assertIn("#2 all-reduce", page.text("#tl-told"))
        page.press("ArrowDown")
        self.assertRegex(page.text("#tl-told"), r"rank 1 on node0: #2 all-reduce")
        self.assertEqual(1, page.evaluate("document.querySelectorAll('#tl .chosen').length"))
        page.press("+")
        self.assertNotEqual(before, page.evaluate(ticks))
        page.press("0")
        everything = page.evaluate(ticks)
        page.press("ArrowRight", shift=True)
        page.press("-")
        page.click("#tl-all")
        self.assertEqual(everything, page.evaluate(ticks))
        for asked, lanes in (("6", 1), ("4-7", 4), ("0-6/2", 4), ("77", 0), ("x, 6-", 0), ("3,3,99999999999", 1), ("0-9999999", 8)):
            page.evaluate("(() => { const i = document.getElementById('tl-ranks'); i.value = %r; i.dispatchEvent(new Event('change')); })()" % asked)
            self.assertEqual(lanes, page.evaluate("document.querySelectorAll('#tl .tl-lane').length"), asked)
        self.quiet(page)

    def test_a_pointer_tells(self):
        page = self.open(height=4000)
        middle = ("(() => { const r = document.querySelector(%r).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        x, y = page.evaluate(middle % "#tl .tl-open")
        page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        page.wait_for("document.getElementById('tl-told').textContent.includes('not finished')")
        x, y = page.evaluate(middle % "svg.map .mark")
        page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        page.wait_for("document.getElementById('map-told').textContent.startsWith('rank 6 on node1: entered #3')")
        self.quiet(page)

    def test_by_keyboard(self):
        page = self.open()
        page.press("Tab")
        self.assertEqual("skip", page.evaluate("document.activeElement.className"))
        page.evaluate("document.querySelector('svg.map').focus()")
        self.assertIn("rank 0 on node0", page.text("#map-told"))
        page.press("ArrowRight")
        self.assertIn("rank 1 on node0", page.text("#map-told"))
        page.press("End")
        self.assertIn("rank 7 on node1", page.text("#map-told"))
        page.press("ArrowRight")
        self.assertIn("rank 7 on node1", page.text("#map-told"))
        page.evaluate("document.querySelector('#f2 summary').focus()")
        page.press("Enter")
        page.wait_for("document.querySelector('#f2').open")
        self.assertIn("Next", page.text("#f2"))
        self.quiet(page)

    def test_copy(self):
        page = self.open()
        page.click("#verdict .copy")
        page.wait_for("document.querySelector('#verdict .copy').textContent !== 'Copy'")
        command = page.text("#verdict .command code")
        self.assertEqual(command, page.evaluate("getSelection().toString()"))
        self.assertIn(page.text("#verdict .copy"), ("Copied", "Press Ctrl+C"))
        self.quiet(page)

    def test_light_and_dark(self):
        colour = "getComputedStyle(document.body).backgroundColor"
        light, dark = self.open(), self.open(dark=True)
        seen = light.evaluate(colour), dark.evaluate(colour)
        self.assertNotEqual(*seen)
        light.click("#theme")
        dark.click("#theme")
        self.assertEqual(seen, (dark.evaluate(colour), light.evaluate(colour)))
        self.quiet(light)
        self.quiet(dark)

    def test_contrast(self):
        for dark in (False, True):
            page = self.open(dark=dark)
            page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            seen = page.evaluate(encyclopedia.CONTRAST)
            self.assertEqual([], seen["poor"])
            self.assertGreater(seen["seen"], 500)

    def test_print(self):
        page = self.open(dark=True)
        with tempfile.TemporaryDirectory() as folder:
            pages = page.pdf(os.path.join(folder, "report.pdf"))
            self.assertGreater(os.path.getsize(os.path.join(folder, "report.pdf")), 20000)
        self.assertGreater(pages, 2)
        closed = "document.querySelectorAll('details:not([open]):not(.stays)').length"
        before = page.evaluate(closed)
        self.assertGreater(before, 5)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(0, page.evaluate(closed))
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(before, page.evaluate(closed))
        page.look(media="print", dark=True)  # printed pages are light
        self.assertEqual("none", page.evaluate("getComputedStyle(document.querySelector('nav')).display"))
        self.assertEqual("rgb(255, 255, 255)", page.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.quiet(page)

    def test_a_narrow_window_does_not_scroll_sideways(self):
        page = self.open(width=390, height=800)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 390)
        self.quiet(page)

    def test_what_logs_and_hosts_bring_stays_text(self):
        page = self.open("dp_rank_absent_4x2", True)
        self.assertIn("</script><img src=x onerror=\"window.pwned=1\">'[U+202E][U+2028]", page.text("#verdict"))
        self.assertIn("onerror=window.pwned=1", page.text("#inputs summary + ul") + page.evaluate("document.querySelector('#inputs').textContent"))
        self.assertIn(f"after {EVIL}".replace("\u202e", "[U+202E]").replace("\u2028", "[U+2028]"), page.evaluate("document.body.textContent"))
        self.assertEqual(0, page.evaluate("document.querySelectorAll('img, svg[onload], iframe, object, link').length"))
        self.browser.pump(0.2)
        self.assertIsNone(page.evaluate("window.pwned ?? null"))
        self.quiet(page)

    def test_a_page_full_of_hostile_text(self):
        """Host, communicator, function, device names: every text that the page takes, as tests/unit/report/html/ makes it."""
        path = os.path.join(WORK, "hostile.html")
        subprocess.run([os.path.join(TREE, "tests", "html_tests"), "--gtest_filter=HostileText.*"], env={**os.environ, "RINGSCOPE_HOSTILE_PAGE": path},
                       check=True, stdout=subprocess.DEVNULL)
        page = self.browser.open(path)
        self.addCleanup(page.close)
        page.evaluate("document.querySelector('svg.map').focus()")
        self.assertIn("<img src=x", page.text("#map-told"))
        page.evaluate("document.getElementById('tl').focus()")
        page.press("End")
        self.assertIn("<img src=x", page.text("#tl-told"))
        self.assertEqual(0, page.evaluate("document.querySelectorAll('img, svg[onload], iframe, object, link, textarea').length"))
        self.assertEqual(4, page.evaluate("document.scripts.length"))
        self.browser.pump(0.2)
        self.assertIsNone(page.evaluate("window.pwned ?? null"))
        self.quiet(page)

    def test_the_policy_holds(self):
        page = self.open()
        page.evaluate("(() => { const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s);"
                      "const i = document.createElement('img'); i.setAttribute('onerror', 'window.pwned = 2'); i.src = 'x'; document.body.append(i); })()")
        self.browser.pump(0.2)
        self.assertIsNone(page.evaluate("window.pwned ?? null"))
        for url in ("https://example.org/", "data:text/plain,x"):
            self.assertEqual("refused", page.evaluate(f"fetch({url!r}).then(() => 'loaded', () => 'refused')"))
        self.assertEqual([], page.foreign_requests)
        self.assertTrue(any("Content Security Policy" in c for c in page.complaints), page.complaints)


def shots(folder):
    """Pictures for docs/: the top of each report as a person opens it."""
    pages = make_all([(name, False) for name, _ in PICTURES])
    with cdp.Browser(cdp.find()) as browser:
        for name, look in PICTURES:
            page = browser.open(pages[name, False], width=1180, height=1500, dark=look == "dark")
            page.screenshot(os.path.join(folder, f"report-{name.replace('_', '-')}-{look}.png"))
            page.close()


def main():
    global TREE, WORK
    if cdp.find() is None:
        print("skipped: there is no Chromium here")
        return 77
    TREE = os.path.abspath(sys.argv.pop(1))
    with tempfile.TemporaryDirectory() as WORK:
        if sys.argv[1:2] == ["--shots"]:
            shots(sys.argv[2])
            return 0
        return 0 if unittest.main(exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
