"""One zygote a worker, and a folder that all workers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.harness import Lab, Zygote


@pytest.fixture(scope="session")
def zygote():
    made = Zygote()
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared(tmp_path_factory, worker_id="") -> Path:
    base = tmp_path_factory.getbasetemp()
    # with several workers each has a folder of its own in one that they share
    root = base.parent if base.name.startswith("popen-") else base
    folder = root / "untouched"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def lab(zygote, tmp_path) -> Lab:
    return Lab(zygote, tmp_path / "project")
