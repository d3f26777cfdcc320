"""What the pages say is so: commands exist, links resolve, tables match the code."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples/flights/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PICTURE_LIMIT = 300 * 1024


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return [code for kind, code in FENCE.findall(page.read_text("utf-8")) if kind == language]


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings get."""
    text = FENCE.sub("", page.read_text("utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def name(page: Path) -> str:
    """Return how a page is called in a test's id."""
    return str(page.relative_to(ROOT))


def make_targets() -> set[str]:
    """Return the targets that the Makefile has."""
    return set(
        re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_resolves(page: Path) -> None:
    broken = []
    for target in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_make_command_exists(page: Path) -> None:
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", "\n".join(blocks(page, "sh"))))
    assert named <= make_targets()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_named_in_a_command_exists(page: Path) -> None:
    commands = "\n".join(blocks(page, "sh"))
    named = re.findall(r"(?<![\w/])((?:examples|docs|tests)/[\w./-]+)", commands)
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 150


def test_the_readme_shows_the_lineage_before_anything_else() -> None:
    first = LINK.search((ROOT / "README.md").read_text("utf-8"))
    assert first is not None
    assert first[1] == "docs/images/lineage.png"


def test_every_picture_is_small_and_used() -> None:
    pictures = sorted((ROOT / "docs/images").glob("*.png"))
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    assert pictures
    assert [p.name for p in pictures if p.stat().st_size > PICTURE_LIMIT] == []
    assert [p.name for p in pictures if f"images/{p.name}" not in text] == []


def test_the_reference_pages_are_what_the_code_says() -> None:
    script = ROOT / "docs/generate_reference.py"
    spec = importlib.util.spec_from_file_location("generate_reference", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stale = [p.name for p, text in module.pages().items() if p.read_text("utf-8") != text]
    assert stale == [], "run: python docs/generate_reference.py"


def shell(script: str, folder: Path) -> str:
    """Run a block of a page as pasted, and return what it printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder in which ``.venv/bin`` has our command, as in a checkout after ``make``."""
    found = shutil.which("datacoolie") or str(ROOT / ".venv/bin/datacoolie")
    (tmp_path / ".venv").symlink_to(Path(found).parent.parent)
    return tmp_path


def test_the_readme_example_runs_as_pasted(checkout: Path) -> None:
    paste = next(code for code in blocks(ROOT / "README.md", "sh") if "mkdir -p shop" in code)
    shell(paste, checkout)
    table = pl.read_delta(str(checkout / "shop/lake/silver/customers"))
    assert sorted(table["id"].to_list()) == [1, 2]

    with (checkout / "shop/data/customers.csv").open("a") as file:
        file.write("3,Edsger,2025-01-03T10:00:00Z\n")
    last = paste.strip().splitlines()[-1]
    shell(last, checkout)
    table = pl.read_delta(str(checkout / "shop/lake/silver/customers"))
    assert sorted(table["id"].to_list()) == [1, 2, 3]


def test_the_readme_definitions_load_in_dagster(checkout: Path) -> None:
    paste = next(code for code in blocks(ROOT / "README.md", "sh") if "mkdir -p shop" in code)
    shell(paste, checkout)
    code = blocks(ROOT / "README.md", "python")[0]
    check = "print([k.to_user_string() for k in defs.resolve_all_asset_keys()])"
    printed = shell(f".venv/bin/python - <<'EOF'\n{code}\n{check}\nEOF", checkout)
    assert "silver/customers" in printed


def test_every_promise_of_the_driver_names_a_test_that_exists():
    page = (ROOT / "docs/reference/orchestration.md").read_text("utf-8")
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) > 30
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    missing = [one for one in named if f"def {one}(" not in code]
    assert missing == []
