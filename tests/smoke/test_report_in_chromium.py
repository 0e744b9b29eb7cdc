"""A report in a real browser: clicked, typed into, narrowed, darkened and printed."""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

import results_directories
from lachesis.cli.entry import execute

pytestmark = pytest.mark.chromium
_DESKTOP = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
_PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Chromium without a network; skipped, visibly, where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        if os.environ.get("LACHESIS_REQUIRE_CHROMIUM"):
            pytest.fail("LACHESIS_REQUIRE_CHROMIUM is set, but chromium or chromedriver is absent")
        pytest.skip("no chromium and chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield started
    finally:
        started.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on two models, two splits, two SLOs and three policies, over time too."""
    place = tmp_path_factory.mktemp("report")
    results_directories.sweep(
        place / "swept",
        models=("llama-4-maverick", "qwen3-235b-a22b"),
        memories=("2/6", "4/4"),
        slos=("tight", "loose"),
        timeline_interval_s=30.0,
    )
    code = execute(["report", str(place / "swept"), "-o", str(place / "report.html"), "--quiet"])
    assert code == 0
    return place / "report.html"


@pytest.fixture
def page(browser: webdriver.Chrome, report: Path) -> Iterator[webdriver.Chrome]:
    """The report, loaded anew; at the end nothing was fetched and nothing went wrong."""
    size(browser, _DESKTOP)
    # What the browser asked its own pages for before is none of ours.
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(report.as_uri())
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    asked = [
        message["params"]["request"]["url"]
        for entry in browser.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith(("file://", "data:", "blob:"))] == []


def size(browser: webdriver.Chrome, metrics: dict[str, Any]) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def find(page: webdriver.Chrome, selector: str) -> WebElement:
    return page.find_element("css selector", selector)


def texts(page: webdriver.Chrome, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
    found: list[str] = page.execute_script(script, selector)
    return found


def column(page: webdriver.Chrome, key: str) -> list[str]:
    """What the table shows in a column."""
    keys = page.execute_script(
        "return [...document.querySelectorAll('#runs-table th')].map((each) => each.dataset.key)"
    )
    return texts(page, f"#runs-table tbody td:nth-child({keys.index(key) + 1})")


def drawn_values(page: webdriver.Chrome, plot: str) -> list[list[float]]:
    """The y values of the traces of a plot's first panel, as Plotly holds them."""
    script = "return document.querySelector(arguments[0]).data.map((trace) => trace.y)"
    found: list[list[float]] = page.execute_script(script, f"#plot-{plot} .drawing")
    return found


def ink(page: webdriver.Chrome) -> str:
    """The colour in which a plot's axis is labelled."""
    script = """const label = document.querySelector("#plot-lifetime .xtitle");
        return getComputedStyle(label).fill"""
    colour: str = page.execute_script(script)
    return colour


def background(page: webdriver.Chrome) -> str:
    colour: str = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    return colour


def test_every_plot_is_drawn(page: webdriver.Chrome) -> None:
    assert texts(page, "section.plot h2") == [
        "Device-years by memory split", "Write composition", "Over time", "Lifetimes of segments",
    ]  # fmt: skip
    for section in page.find_elements("css selector", "section.plot"):
        drawings = section.find_elements("css selector", ".drawing .main-svg")
        assert len(drawings) >= 2
        assert section.find_elements("css selector", "g.trace, g.points path, g.bars path")
    assert find(page, "#runs-status").text == "24 of 24 runs"
    assert "The flash lasts" in find(page, "#answer").text or "tie" in find(page, "#answer").text


def test_a_heading_sorts_both_ways_and_says_so(page: webdriver.Chrome) -> None:
    heading = find(page, '#runs-table th[data-key="hbf_lifetime_years"]')
    assert heading.get_attribute("aria-sort") == "none"
    heading.find_element("css selector", "button").click()
    years = [float(text.replace(",", "")) for text in column(page, "hbf_lifetime_years")]
    assert heading.get_attribute("aria-sort") == "descending"
    assert years == sorted(years, reverse=True)
    assert years[0] > years[-1]
    heading.find_element("css selector", "button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert [float(text.replace(",", "")) for text in column(page, "hbf_lifetime_years")] == sorted(
        years
    )
    find(page, '#runs-table th[data-key="policy"] button').click()
    assert column(page, "policy") == sorted(column(page, "policy"))
    assert heading.get_attribute("aria-sort") == "none"


def test_filters_cut_rows_by_choice_and_by_number(page: webdriver.Chrome) -> None:
    Select(find(page, 'select[aria-label="Filter policy"]')).select_by_visible_text("hbf-only")
    assert set(column(page, "policy")) == {"hbf-only"}
    assert find(page, "#runs-status").text == "8 of 24 runs"
    years = sorted(float(text.replace(",", "")) for text in column(page, "hbf_lifetime_years"))
    bound = (years[3] + years[4]) / 2
    field = find(page, 'input[aria-label="Filter device-years"]')
    field.send_keys(f">{bound}")
    kept = [float(text.replace(",", "")) for text in column(page, "hbf_lifetime_years")]
    assert sorted(kept) == [value for value in years if value > bound]
    field.clear()
    field.send_keys(f"{years[0]}..{bound}")
    assert find(page, "#runs-status").text.startswith(f"{sum(y <= bound for y in years)} of 24")
    find(page, "#runs-clear").click()
    assert find(page, "#runs-status").text == "24 of 24 runs"


def test_columns_come_and_go(page: webdriver.Chrome) -> None:
    find(page, "#runs-columns summary").click()
    assert "pe_cycles" not in texts_of_keys(page)
    find(page, '[data-column="pe_cycles"]').click()
    assert "pe_cycles" in texts_of_keys(page)
    assert set(column(page, "pe_cycles")) == {"100,000"}
    find(page, '[data-column="pe_cycles"]').click()
    assert "pe_cycles" not in texts_of_keys(page)


def texts_of_keys(page: webdriver.Chrome) -> list[str]:
    script = (
        "return [...document.querySelectorAll('#runs-table th')].map((each) => each.dataset.key)"
    )
    found: list[str] = page.execute_script(script)
    return found


def test_a_selector_changes_what_is_drawn(page: webdriver.Chrome) -> None:
    before = drawn_values(page, "lifetime")
    Select(find(page, '[data-selector="model"]')).select_by_visible_text("qwen3-235b-a22b")
    assert drawn_values(page, "lifetime") != before
    assert find(page, "#plot-lifetime .shown").text == "Model: qwen3-235b-a22b"
    over_time = drawn_values(page, "timeline")
    Select(find(page, '[data-choice="timeline"]')).select_by_index(3)
    assert drawn_values(page, "timeline") != over_time


def test_a_policy_can_be_hidden(page: webdriver.Chrome) -> None:
    names = """return [...new Set(document.querySelector("#plot-lifetime .drawing").data
        .map((each) => each.name))]"""
    bars = "return document.querySelector('#plot-writes .drawing').data[0].y[1]"
    assert "hbf-only" in page.execute_script(names)
    assert "hbf-only" in page.execute_script(bars)
    find(page, '[data-policy="hbf-only"]').click()
    assert page.execute_script(names) == ["5-year warranty", "hbm-first", "lachesis-deterministic"]
    assert "hbf-only" not in page.execute_script(bars)


def test_the_theme_changes_page_and_plots(page: webdriver.Chrome) -> None:
    button = find(page, "#theme")
    assert (button.get_attribute("aria-pressed"), background(page)) == (
        "false",
        "rgb(255, 255, 255)",
    )
    light = ink(page)
    button.click()
    assert (button.get_attribute("aria-pressed"), background(page)) == ("true", "rgb(18, 22, 27)")
    assert ink(page) != light
    button.click()
    assert (ink(page), background(page)) == (light, "rgb(255, 255, 255)")


def test_the_systems_dark_colours_are_followed(page: webdriver.Chrome) -> None:
    light = ink(page)
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        assert background(page) == "rgb(18, 22, 27)"
        assert page.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0](true)))"
        )
        assert ink(page) != light
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_everything_works_from_the_keyboard(page: webdriver.Chrome) -> None:
    def press(*keys: str) -> WebElement:
        page.switch_to.active_element.send_keys(*keys)
        return page.switch_to.active_element

    def tab_to(selector: str) -> WebElement:
        for _ in range(80):
            if press(Keys.TAB) == find(page, selector):
                return page.switch_to.active_element
        raise AssertionError(f"no Tab reaches {selector}")

    first = press(Keys.TAB)
    assert first.text == "Skip to the answer"
    assert first.is_displayed()
    assert press(Keys.ENTER).get_attribute("id") == "answer"

    model = tab_to('[data-selector="model"]')
    outline = page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", model)
    assert outline == "solid"
    before = drawn_values(page, "lifetime")
    press(Keys.ARROW_DOWN)
    assert drawn_values(page, "lifetime") != before

    tab_to('[data-policy="hbf-only"]')
    press(Keys.SPACE)
    assert not find(page, '[data-policy="hbf-only"]').is_selected()

    tab_to('#runs-table th[data-key="hbf_lifetime_years"] button')
    press(Keys.ENTER)
    heading = find(page, '#runs-table th[data-key="hbf_lifetime_years"]')
    assert heading.get_attribute("aria-sort") == "descending"
    tab_to('input[aria-label="Filter device-years"]')
    press("<0")
    assert find(page, "#runs-status").text == "0 of 24 runs"


def test_arrow_keys_read_the_values_of_every_plot(page: webdriver.Chrome) -> None:
    for name in ("lifetime", "writes", "timeline", "distribution"):
        drawing = find(page, f"#plot-{name} .drawing")
        readout = find(page, f"#plot-{name} .readout")
        assert readout.get_attribute("role") == "status"
        assert readout.text == ""
        page.execute_script("arguments[0].focus()", drawing)
        assert page.switch_to.active_element == drawing
        assert readout.text.startswith("Arrow keys")
        lines = page.execute_script(_LINES, drawing)
        said = set()
        for line, points in enumerate(lines):
            drawing.send_keys(Keys.HOME)
            for point in range(min(points, 3)):
                text = wait_for(
                    page, readout, f"(line {line + 1} of {len(lines)}, point {point + 1} of"
                )
                said.add(text)
                assert any(letter.isdigit() for letter in text.partition(" (line")[0])
                # The pointer would be shown the same.
                label = f"#plot-{name} .hoverlayer .nums"
                shown = texts(page, f"{label} tspan.line") or texts(page, label)
                assert shown
                assert all(line in text for line in shown)
                drawing.send_keys(Keys.ARROW_RIGHT)
            drawing.send_keys(Keys.END)
            wait_for(
                page, readout, f"(line {line + 1} of {len(lines)}, point {points} of {points})"
            )
            drawing.send_keys(Keys.ARROW_RIGHT)  # there is no further one
            drawing.send_keys(Keys.ARROW_DOWN)
        assert len(said) == sum(min(points, 3) for points in lines)
        drawing.send_keys(Keys.ESCAPE)
        assert readout.text.startswith("Arrow keys")
        page.execute_script("arguments[0].blur()", drawing)
        assert readout.text == ""
        assert not page.find_elements("css selector", f"#plot-{name} .hoverlayer .hovertext")


#: How many points each line of a drawing has to tell; bars of nothing are none.
_LINES = """return arguments[0].data.filter((each) => each.hoverinfo !== "skip")
    .map((each) => each.type === "bar" ? each.x.filter((size) => size !== 0).length
      : each.y.filter((value) => value !== null).length)
    .filter((points) => points > 0)"""


def wait_for(page: webdriver.Chrome, element: WebElement, words: str) -> str:
    """The text of an element once it holds the words; Plotly delays labels by some 50 ms."""
    WebDriverWait(page, 5, poll_frequency=0.03).until(
        lambda _: words in element.text, f"{words} in {element.text}"
    )
    return element.text


def test_a_value_that_is_read_is_that_of_the_run(page: webdriver.Chrome) -> None:
    drawing, readout = find(page, "#plot-lifetime .drawing"), find(page, "#plot-lifetime .readout")
    page.execute_script("arguments[0].focus()", drawing)
    drawing.send_keys(Keys.ARROW_RIGHT)
    text = wait_for(page, readout, "line 1 of 3, point 1 of 2")
    years = drawn_values(page, "lifetime")[2][0]
    assert text.startswith(f"hbm-first, memory 2/6, {years:.4g} device-years, 95 %: ")
    drawing.send_keys(Keys.ARROW_DOWN)
    assert wait_for(page, readout, "line 2 of 3, point 1 of 2").startswith("hbf-only, memory 2/6")
    # What is hidden is not read.
    find(page, '[data-policy="hbf-only"]').click()
    page.execute_script("arguments[0].focus()", drawing)
    drawing.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert wait_for(page, readout, "line 2 of 2").startswith("lachesis-deterministic")


def test_tab_reaches_plots_and_leaves_them(page: webdriver.Chrome) -> None:
    panels = page.find_elements("css selector", ".drawing")
    page.execute_script("arguments[0].focus()", panels[0])
    for panel in panels[1:3]:
        page.switch_to.active_element.send_keys(Keys.TAB)
        assert page.switch_to.active_element == panel
        outline = page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", panel)
        assert outline == "solid"


def test_controls_have_names(page: webdriver.Chrome) -> None:
    script = """return [...document.querySelectorAll("button, select, input, [role=application]")]
        .filter((each) => each.offsetParent !== null
          && !(each.ariaLabel || each.textContent.trim() || each.closest("label")))
        .map((each) => each.outerHTML)"""
    assert page.execute_script(script) == []
    for drawing in page.find_elements("css selector", ".drawing"):
        assert drawing.get_attribute("aria-label").startswith("Plot: ")


def test_a_phone_scrolls_only_downwards(page: webdriver.Chrome, report: Path) -> None:
    size(page, _PHONE)
    page.get(report.as_uri())
    assert page.execute_script("return document.documentElement.scrollWidth") == 360
    script = """return [...document.querySelectorAll("main *")].filter((each) =>
        !each.closest(".scroll") && !each.closest("svg")
        && each.getBoundingClientRect().right > 361).map((each) => each.outerHTML.slice(0, 80))"""
    assert page.execute_script(script) == []
    widths = page.execute_script(
        "return [...document.querySelectorAll('.drawing > div')].map((each) => each.clientWidth)"
    )
    assert widths
    assert max(widths) <= 360


def test_paper_has_light_colours_no_controls_and_plots_that_fit(page: webdriver.Chrome) -> None:
    find(page, "#theme").click()
    Select(find(page, '[data-selector="model"]')).select_by_visible_text("qwen3-235b-a22b")
    page.execute_script("""
        window.seen = {};
        window.addEventListener("beforeprint", () => {
          window.seen.widths = [...document.querySelectorAll(".drawing .main-svg")]
            .map((each) => each.clientWidth || Number(each.getAttribute("width")));
          window.seen.ink = getComputedStyle(document.querySelector("#plot-lifetime .xtitle")).fill;
        });""")
    paper = {"printBackground": True, "preferCSSPageSize": True}
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", paper)["data"])
    assert pdf.startswith(b"%PDF-")
    seen = page.execute_script("return window.seen")
    assert seen["ink"] == "rgb(29, 35, 41)"
    assert 0 < max(seen["widths"]) <= 700
    # The screen is as it was.
    assert background(page) == "rgb(18, 22, 27)"
    assert ink(page) != seen["ink"]

    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert background(page) == "rgb(255, 255, 255)"
        for selector in ("#controls", "#theme", "nav", "#runs-clear", "#runs-table tr.filters",
                         "#plot-lifetime .readout", "#plot-lifetime .hoverlayer"):  # fmt: skip
            assert not find(page, selector).is_displayed()
        assert find(page, "#plot-lifetime .shown").text == "Model: qwen3-235b-a22b"
        assert find(page, "#plot-timeline .shown").is_displayed()
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_an_unexpected_script_is_refused(page: webdriver.Chrome) -> None:
    page.execute_script("""const script = document.createElement("script");
        script.textContent = "window.intruder = true";
        document.body.append(script);""")
    assert page.execute_script("return window.intruder") is None
    refused = page.get_log("browser")
    assert len(refused) == 1
    assert "Content Security Policy" in refused[0]["message"]
