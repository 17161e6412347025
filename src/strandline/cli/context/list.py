"""`strandline context list`: the contexts, without their secrets."""

from __future__ import annotations

import argparse

from strandline.cli import contexts
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lists the contexts; secrets are hidden."
    add_json(
        parser,
        {"contexts": [{"name": "text", "current": "flag", "settings": {"<key>": "text"}}], "file": "text"},
    )


def call(options: argparse.Namespace) -> int:
    known = contexts.load()
    found = [
        {"name": name, "current": name == known.current, "settings": contexts.without_secrets(settings)}
        for name, settings in sorted(known.by_name.items())
    ]
    if options.json:
        print_json({"contexts": found, "file": str(contexts.path())})
        return DONE
    if not found:
        print("no contexts; add one with `strandline context add NAME --bootstrap-server HOST:PORT`")
        return DONE
    rows = [
        (
            "*" if name == known.current else "",
            name,
            settings.get("bootstrap.servers"),
            " ".join(
                f"{key}={value}"
                for key, value in contexts.without_secrets(settings).items()
                if key != "bootstrap.servers"
            ),
        )
        for name, settings in sorted(known.by_name.items())
    ]
    print("\n".join(table(("", "CONTEXT", "BOOTSTRAP SERVERS", "SETTINGS"), rows)))
    return DONE
