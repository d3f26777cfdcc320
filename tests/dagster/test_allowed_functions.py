"""Which functions metadata may call, as a code location is told."""

from datacoolie_core import DataCoolieRunConfig
from datacoolie_dagster import build_datacoolie_definitions

DOCUMENT = """
connections:
  - {name: code, format: function}
  - {name: lake, format: delta, configure: {base_path: lake}}
dataflows:
  - name: f
    source: {connection_name: code, python_function: functions.sources.load}
    destination: {connection_name: lake, table: o}
"""


def test_the_list_of_the_run_config_or_of_the_project_reaches_each_load(tmp_path):
    (tmp_path / "metadata.yaml").write_text(DOCUMENT)
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/sources.py").write_text(
        "import polars as pl\ndef load(**_):\n    return pl.DataFrame({'id': [1]})\n"
    )

    def loads(**given) -> bool:
        found = build_datacoolie_definitions(
            "metadata.yaml", project_dir=tmp_path, state=tmp_path / "state", **given
        )
        job = found.get_implicit_global_asset_job_def()
        return job.execute_in_process(raise_on_error=False).success

    assert loads()
    assert not loads(run_config=DataCoolieRunConfig(allowed_function_prefixes=("jobs",)))
    (tmp_path / "datacoolie.toml").write_text('allowed_function_prefixes = ["jobs"]')
    assert not loads()
    assert not loads(run_config=DataCoolieRunConfig(max_workers=1))
    assert loads(run_config=DataCoolieRunConfig(allowed_function_prefixes=("functions",)))
