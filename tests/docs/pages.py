"""The pages whose snippets are proved: README, the guides and the pages for operators."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        ROOT / "README.md",
        *(ROOT / "docs" / "guides").glob("*.md"),
        *(ROOT / "docs" / "operating").glob("*.md"),
    ]
)
# Pages that a test of their own runs as a whole.
PROVED_ELSEWHERE = {
    "docs/guides/command-line.md": "tests/system/cli/tour.py",
    "docs/guides/lab.md": "tests/lab/test_commands.py",
    "docs/guides/serializers.md": "tests/serde/test_guide.py",
    "docs/operating/listener-sasl-plaintext.md": "tests/security/test_listener_pages.py",
    "docs/operating/listener-sasl-ssl.md": "tests/security/test_listener_pages.py",
    "docs/operating/listener-ssl.md": "tests/security/test_listener_pages.py",
}
# Pages whose code needs a Spark session, which tests/spark shares.
ON_SPARK = {"docs/guides/spark.md"}
RUN_HERE = [page for page in PAGES if page not in PROVED_ELSEWHERE and page not in ON_SPARK]
