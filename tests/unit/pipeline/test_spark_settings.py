"""Masters, settings of Spark and triggers that cannot be are told without Spark, with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.pipeline.spec.reader import load
from tests.unit.pipeline.specs import SPEC, mistakes_of


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("executor.memory: 2g", "is not a setting of Spark: their names begin with spark."),
        ("spark.master: local[2]", "cannot be set here: set master: in spark"),
        ("spark.app.name: x", "set pipeline: NAME"),
        ("spark.driver.memory: lots", "must be a size such as 2g or 800m, not 'lots'"),
        ("spark.driver.memory: 2048", "must be a size such as 2g or 800m, not '2048'"),
        ("spark.driver.memory: 2gb", "must be a size such as 2g or 800m, not '2gb'"),
        ("spark.driver.memory: 100m", "must be at least 450m, not '100m'"),
        ("spark.executor.memory: -1g", "must be a size such as 2g or 800m, not '-1g'"),
        ("spark.executor.memory: 100", "must be at least 450m"),
        ("spark.driver.maxResultSize: 1 g", "must be a size"),
        ("spark.sql.shuffle.partitions: 0", "must be a positive number, not '0'"),
        ("spark.executor.cores: two", "must be a positive number, not 'two'"),
        ("spark.sql.adaptive.enabled: yes", "must be true or false, not 'yes'"),
        ("spark.sql.legacy.timeParserPolicy: LEGACI", "did you mean LEGACY?"),
        ("spark.jars: [a.jar, b.jar]", "must be text"),
        ("spark.jars: 'hdfs://x/y.jar, /nowhere/a.jar'", "names /nowhere/a.jar, which does not exist"),
        ("spark.files: file:///nowhere/a.csv", "names file:///nowhere/a.csv, which does not exist"),
        ("spark.jars: nowhere-*.jar", "names nowhere-*.jar, which does not exist"),
        ("spark.jars:", "has no value"),
        ("spark.jars: null", "has no value"),
    ],
)
def test_a_setting_of_spark_that_cannot_be_is_told_with_its_line(
    tmp_path: Path, setting: str, text: str
) -> None:
    added = f"spark:\n  settings:\n    spark.ui.port: 4040\n    {setting}\nsources:"
    ((line, said),) = mistakes_of(tmp_path, SPEC.replace("sources:", added, 1))
    assert line == 7
    assert said.startswith(f"spark.settings.{setting.partition(':')[0]} ")
    assert text in said


def test_settings_that_spark_takes_are_left_as_they_are(tmp_path: Path) -> None:
    settings = {
        "spark.driver.memory": "1G",
        "spark.executor.memory": "512",
        "spark.executor.memoryOverhead": "384",
        "spark.driver.maxResultSize": "0",
        "spark.sql.adaptive.enabled": "True",
        "spark.hadoop.fs.s3a.access.key": "0",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.driver.extraJavaOptions": "",
        "spark.jars": f"{tmp_path},file:{tmp_path},file://{tmp_path}#name,{tmp_path}*,https://h/a.jar",
        "spark.files": "local:/on/each/worker.csv",
    }
    lines = "".join(f"    {name}: '{value}'\n" for name, value in settings.items())
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("sources:", f"spark:\n  settings:\n{lines}sources:", 1))
    assert load(path, {}).spark == settings


@pytest.mark.parametrize(
    ("master", "is_one"),
    [
        ("local", True),
        ("local[4]", True),
        ("local[*, 3]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://a:7077,b:7077", True),
        ("k8s://https://10.0.0.1:6443", True),
        ("yarn", True),
        ("local[0]", False),
        ("local[]", False),
        ("local[two]", False),
        ("local[-1]", False),
        ("local-cluster[2]", False),
        ("spark://a", False),
        ("spark://:7077", False),
        ("spark://a:port", False),
        ("k8s://", False),
        ("mesos://a:5050", False),
    ],
)
def test_a_master_is_one_that_spark_knows(tmp_path: Path, master: str, is_one: bool) -> None:
    text = SPEC.replace("sources:", f"spark: {{master: '{master}'}}\nsources:", 1)
    if not is_one:
        ((line, said),) = mistakes_of(tmp_path, text)
        assert (line, f"spark.master cannot be {master!r}: use local[*]" in said) == (4, True)
        return
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    assert load(path, {}).master == master


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("every 0 seconds", "write every 1 millisecond to have one batch follow another"),
        ("every 00 days", "write every 1 millisecond to have one batch follow another"),
        ("every -5 seconds", "use available-now, once, or every N seconds"),
        ("every 1.5 seconds", "use available-now"),
        ("every ² seconds", "use available-now"),
        ("every 99999999999999999999 days", "use available-now"),
        ("every 5 second seconds", "use available-now"),
        ("every", "use available-now"),
        ("5 seconds", "use available-now"),
        ("once, every 5 seconds", "use available-now"),
        ("{once: true, every: 5 seconds}", "must be text"),
        ("once\ntrigger: every 5 seconds", "trigger is given twice"),
    ],
)
def test_a_trigger_that_cannot_be_is_told(tmp_path: Path, trigger: str, text: str) -> None:
    found = mistakes_of(tmp_path, f"trigger: {trigger}\n{SPEC}")
    assert any(line <= 2 and text in said for line, said in found), found


@pytest.mark.parametrize("trigger", ["every 1 millisecond", "every  10minutes", "every 36500 days"])
def test_a_trigger_is_an_interval(tmp_path: Path, trigger: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(f"trigger: {trigger}\n{SPEC}")
    assert load(path, {}).trigger.every == trigger.removeprefix("every").strip()


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("DATEFORMAT: ''", "is empty"),
        ("mode: FAILFAST", "cannot be set: a value that cannot be read always becomes a dead letter"),
        ("Mode: PERMISSIVE", "cannot be set: a value that cannot be read always becomes a dead letter"),
        (
            "columnNameOfCorruptRecord: bad",
            "cannot be set: a value that cannot be read becomes a dead letter",
        ),
        ("DateFormat: yyyy, dateformat: yyyy", "is DateFormat once more"),
        ("timestampFormatt: yyyy", "is not an option of Spark: did you mean timestampFormat?"),
    ],
)
def test_an_option_of_a_decoder_that_cannot_be_is_told_with_its_line(
    tmp_path: Path, option: str, text: str
) -> None:
    added = f"format: json\n      options: {{{option}}}"
    ((line, said),) = mistakes_of(tmp_path, SPEC.replace("format: json", added))
    assert (line, text in said) == (9, True), said
    files = f"files: x\n    options: {{{option}}}"
    text_of_files = SPEC.replace("    topic: orders", f"    {files}", 1) + "dead-letters: dead\n"
    ((line, said),) = mistakes_of(tmp_path, text_of_files)
    assert (line, text in said) == (7, True), said


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("transactional.id: mine", "each pipeline's checkpoint has its own"),
        ("bootstrap.servers: 'other:1'", "set brokers: in the spec"),
        ("transaction.timeout.ms: 5", "make batches smaller"),
        ("acks: 1", "a transaction needs acks=all, and not 1: leave it out"),
        ("enable.idempotence: false", "a transaction needs enable.idempotence=true, and not false"),
        ("value.serializer: json", "values are written as they are"),
        ("partitioner.class: x", "give them a column partition instead"),
        ("retries: 0", "retries=0 contradicts enable.idempotence=true"),
    ],
)
def test_a_setting_of_the_producer_that_is_the_pipelines_own_is_told(
    tmp_path: Path, setting: str, text: str
) -> None:
    found = mistakes_of(tmp_path, f"producer: {{{setting}}}\n{SPEC}")
    assert any(line == 1 and text in said for line, said in found), found


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("orders.dlq", "dead letters"),
        ("orders.orders.retry.1", "records to try again"),
        ("orders.orders.retry.2", None),
        ("orders.orders", None),
    ],
)
def test_a_sink_does_not_write_among_the_pipelines_own_letters(
    tmp_path: Path, target: str, what: str | None
) -> None:
    rule = "    rules: [{name: paid, check: amount > 0, retry: true}]\n    watermark:"
    text = SPEC.replace("    watermark:", rule).replace("topic: big-orders", f"topic: {target}")
    text += "retry: {backoff: 5 seconds}\n"
    if what is None:
        (tmp_path / "spec.yaml").write_text(text)
        assert load(tmp_path / "spec.yaml", {}).sinks[0].target == target
        return
    ((line, said),) = mistakes_of(tmp_path, text)
    assert (line, f"where the pipeline puts {what}, and nothing else may be written to it" in said) == (
        21,
        True,
    )


def test_one_topic_for_all_dead_letters_is_no_sinks_and_others_are_free(tmp_path: Path) -> None:
    text = SPEC.replace("topic: big-orders", "topic: dead")
    ((line, said),) = mistakes_of(tmp_path, f"dead-letters: dead\n{text}")
    assert (line, "puts dead letters" in said) == (21, True)
    (tmp_path / "spec.yaml").write_text(f"dead-letters: dead\n{SPEC.replace('big-orders', 'orders.dlq')}")
    load(tmp_path / "spec.yaml", {})


def test_a_source_does_not_read_what_the_pipeline_tries_again(tmp_path: Path) -> None:
    rule = "    rules: [{name: paid, check: amount > 0, retry: true}]\n    watermark:"
    text = SPEC.replace("    watermark:", rule).replace(
        "topic: orders", "topic: [orders, orders.orders.retry.1]"
    )
    ((line, said),) = mistakes_of(tmp_path, f"{text}retry: {{backoff: 5 seconds}}\n")
    assert (line, "is read by the pipeline itself" in said) == (5, True)
