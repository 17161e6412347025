"""A run as one page of HTML that needs no server and no network: a picture of the partition that can be stepped."""

from __future__ import annotations

import html
import json
from importlib.resources import files

from strandline.lab.run import Run


def page_of(run: Run) -> str:
    template = files("strandline.lab").joinpath("page.html").read_text()
    # A "</" inside of the data would end its element.
    data = json.dumps(run.as_json(), ensure_ascii=False).replace("</", "<\\/")
    return template.replace("{{title}}", html.escape(run.scenario.title)).replace("{{data}}", data)
