"""Which files metadata is written into: one for all, or one for each section and stage."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from datacoolie_core import storage
from datacoolie_core.metadata.files import ENVIRONMENTS, READABLE
from datacoolie_core.metadata.sections import SECTIONS, Entry, Section

if TYPE_CHECKING:
    from datacoolie_core.metadata.sections import Sections

Form = Literal["json", "yaml", "excel"]
Layout = Literal["single", "split"]
Parts = dict[Section, list[Entry]]
EXTENSIONS: dict[Form, str] = {"json": ".json", "yaml": ".yaml", "excel": ".xlsx"}
"""How the files of each form end."""

_NO_STAGE = "dataflows"
_UNSAFE = re.compile(r"[^\w.-]+")


def is_file(uri: str) -> bool:
    """Whether a path is meant as a file: it ends as one."""
    return uri.lower().endswith(READABLE)


def placed(sections: Sections, target: str, to: Form, layout: Layout) -> list[tuple[str, Parts]]:
    """Return each file and what it will hold."""
    everything: Parts = {name: getattr(sections, name) for name in SECTIONS}
    if layout == "single":
        uri = target if is_file(target) else storage.join(target, f"metadata{EXTENSIONS[to]}")
        return [(uri, everything)]
    files: dict[str, Parts] = {}
    for name in ("connections", "schema_hints"):
        if everything[name]:
            files[name] = {name: everything[name]}
    names: dict[str, str] = {}
    taken = {ENVIRONMENTS, *SECTIONS[:1], *SECTIONS[2:]}
    for entry in sections.dataflows:
        stage = entry.text("stage") or _NO_STAGE
        if stage not in names:
            names[stage] = _free_name(stage, taken)
        files.setdefault(names[stage], {"dataflows": []})["dataflows"].append(entry)
    files = files or {_NO_STAGE: {"dataflows": []}}
    return [(storage.join(target, f"{name}{EXTENSIONS[to]}"), held) for name, held in files.items()]


def _free_name(stage: str, taken: set[str]) -> str:
    """Return a file name for a stage that no other one has, on any disk."""
    plain = _UNSAFE.sub("_", stage).strip(".") or "stage"
    name, number = plain, 1
    while name.casefold() in taken:
        number += 1
        name = f"{plain}_{number}"
    taken.add(name.casefold())
    return name
