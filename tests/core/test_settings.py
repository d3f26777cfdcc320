"""Settings: the environment over the file over defaults, and where a project is."""

from __future__ import annotations

import pytest

from datacoolie_core.errors import SettingsError
from datacoolie_core.settings import Settings, find_project_dir, load_settings


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATACOOLIE_PROJECT_DIR", raising=False)
    return tmp_path


def test_defaults_hold_without_a_file(home):
    assert load_settings() == Settings(project_dir=str(home))


def test_the_file_is_found_upwards_and_its_folder_is_the_root(home, monkeypatch):
    (home / "datacoolie.toml").write_text('max_workers = 3\nmetadata = ["a", "b"]\nsql_path = "s"')
    (home / "a/b").mkdir(parents=True)
    monkeypatch.chdir(home / "a/b")
    settings = load_settings()
    assert (settings.project_dir, settings.max_workers) == (str(home), 3)
    assert (settings.metadata, settings.sql_path) == (("a", "b"), ("s",))


def test_a_variable_wins_over_the_file_and_a_blank_one_is_none(home, monkeypatch):
    (home / "datacoolie.toml").write_text('retry_delay = 1\nstate = "from_file"')
    monkeypatch.setenv("DATACOOLIE_RETRY_DELAY", "2.5")
    monkeypatch.setenv("DATACOOLIE_STATE", " ")
    monkeypatch.setenv("DATACOOLIE_METADATA", "a, b")
    settings = load_settings()
    assert (settings.retry_delay, settings.state) == (2.5, "from_file")
    assert settings.metadata == ("a", "b")


def test_the_project_root_is_the_flag_then_the_variable_then_the_file(home, monkeypatch):
    for name in ("flag", "variable", "file"):
        (home / name).mkdir()
    (home / "datacoolie.toml").write_text('project_dir = "file"')
    assert find_project_dir() == str(home / "file")
    monkeypatch.setenv("DATACOOLIE_PROJECT_DIR", "variable")
    assert find_project_dir() == str(home / "variable")
    assert find_project_dir("flag") == str(home / "flag")
    assert find_project_dir("s3://bucket/x/") == "s3://bucket/x"


def test_the_settings_of_a_project_named_by_a_flag_are_its_own(home):
    (home / "shop").mkdir()
    (home / "datacoolie.toml").write_text("max_workers = 1")
    (home / "shop/datacoolie.toml").write_text("max_workers = 2")
    assert load_settings("shop").max_workers == 2
    assert load_settings("shop").project_dir == str(home / "shop")


def test_a_root_elsewhere_keeps_the_settings_of_the_file_that_names_it(home, monkeypatch):
    monkeypatch.setenv("DATACOOLIE_PROJECT_DIR", "memory://project")
    (home / "datacoolie.toml").write_text("max_workers = 3")
    assert load_settings() == Settings(project_dir="memory://project", max_workers=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_worker = 3", "unknown setting 'max_worker'. Did you mean 'max_workers'?"),
        ("colour = 3", "unknown setting 'colour'. Known: project_dir, metadata, state"),
        ("max_workers = 0", "max_workers must be a whole number of at least 1, not 0"),
        ("max_workers = true", "max_workers must be a whole number of at least 1, not True"),
        ("max_workers = 1.5", "max_workers must be a whole number of at least 1, not 1.5"),
        ("retry_delay = -1", "retry_delay must be a number of at least 0, not -1"),
        ("retry_delay = nan", "retry_delay must be a number of at least 0, not nan"),
        ("metadata = 5", "metadata must be a list of text, or text with commas, not 5"),
        ("state = 5", "state must be text, not 5"),
        ("state = ", "can't be read: "),
    ],
)
def test_a_wrong_setting_is_refused_with_its_file(home, text, message):
    (home / "datacoolie.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"{home / 'datacoolie.toml'}: {message}")


def test_a_misspelt_variable_is_refused_but_other_tools_may_share_the_prefix(monkeypatch):
    monkeypatch.setenv("DATACOOLIE_SQLITE_DB", "x")
    monkeypatch.setenv("DATACOOLIE_METADATA_DB", "x")
    load_settings()
    monkeypatch.setenv("DATACOOLIE_MAX_WORKER", "3")
    with pytest.raises(SettingsError, match="Did you mean 'DATACOOLIE_MAX_WORKERS'"):
        load_settings()


def test_a_wrong_variable_is_named_as_written(monkeypatch):
    monkeypatch.setenv("DATACOOLIE_MAX_WORKERS", "many")
    with pytest.raises(SettingsError, match="DATACOOLIE_MAX_WORKERS must be a whole number"):
        load_settings()
