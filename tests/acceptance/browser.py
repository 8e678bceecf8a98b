"""A real Chromium on Prefect's pages, as a person uses them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MILLISECONDS = 30_000


class Browser:
    """One page of a browser, and the hosts that it asked."""

    def __init__(self, page: Any, address: str, late: type[Exception]) -> None:
        self.page = page
        self.address = address
        self._late = late
        self.hosts: set[str] = set()
        self.dialogs: list[str] = []
        page.set_default_timeout(MILLISECONDS)
        page.on("request", lambda request: self._note(request.url))
        # What the pages ask of others is noted, and not let out.
        local = urlsplit(address).netloc
        page.route(lambda url: urlsplit(url).netloc not in (local, ""), lambda route: route.abort())
        page.on("dialog", lambda dialog: self.dialogs.append(dialog.message))

    def _note(self, url: str) -> None:
        if urlsplit(url).netloc:  # a picture may be its own address
            self.hosts.add(urlsplit(url).netloc)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.address}{path}")
        self.page.wait_for_load_state("networkidle")

    def field(self, title: str) -> Any:
        """The field of a form with this title, the innermost one where several have it."""
        label = self.page.locator(".schema-form-property__label", has_text=title)
        return self.page.locator(".schema-form-property").filter(has=label).last

    def submit(self) -> int:
        """Send a form; how the server answered. A page that is still being made takes no click."""
        for _ in range(12):
            try:
                with self.page.expect_response(
                    lambda answer: "create_flow_run" in answer.url, timeout=5_000
                ) as answer:
                    self.page.get_by_role("button", name="Submit").click()
            except self._late:
                continue
            # The server's SQLite is locked for a moment when several write.
            if answer.value.status != HTTPStatus.SERVICE_UNAVAILABLE:
                return int(answer.value.status)
        raise AssertionError("the form was not sent")

    def read(self, *texts: str) -> None:
        """Wait until all of these stand on the page."""
        for text in texts:
            self.page.get_by_text(text).first.wait_for()

    def links(self, to: str) -> list[tuple[str, str]]:
        found = self.page.locator(f"a[href*='{to}']")
        return [
            (str(link["href"]), str(link["text"]))
            for link in found.evaluate_all("e => e.map(x => ({href: x.href, text: x.innerText}))")
        ]

    def picture(self, name: str) -> None:
        """A picture for the documentation, where a folder for them is named."""
        folder = os.environ.get("CONCORDANCE_PICTURES")
        if folder:
            # What was drawn meanwhile need not be waited for by a test that makes no picture.
            self.page.wait_for_timeout(1_500)
            self.page.screenshot(path=str(Path(folder) / name))


@contextmanager
def chromium(address: str, home: Path) -> Iterator[Browser]:
    """The machine's own Chromium; the test is skipped where there is none."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=found, args=FLAGS, env=dict(os.environ) | {"HOME": str(home)}
        )
        try:
            page = browser.new_page(viewport={"width": 1_280, "height": 860})
            yield Browser(page, address, playwright.TimeoutError)
        finally:
            browser.close()
