"""Slots of others: those that packages register, and those that a dataflow names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from datacoolie_core import registry
from datacoolie_core.errors import TransformError
from datacoolie_core.transforms.slots import PLUGIN_SLOTS, Slot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.metadata.models import Dataflow

_FIELD = "configure.datacoolie.transforms"


def plugin_slots(dataflow: Dataflow, allowed: Iterable[str]) -> list[Slot]:
    """Return the slots of plug-ins for a dataflow, in no order.

    Args:
        dataflow: Names slots as ``package.module:NAME``.
        allowed: Packages and modules that these may come from; empty allows every one.

    Raises:
        TransformError: One is not there, not allowed, no slot, or takes a slot that is not free.
    """
    found: dict[str, Slot] = {
        name: _checked(slot, f"entry point '{name}'")
        for name, slot in registry.transforms.all().items()
    }
    prefixes = tuple(allowed)
    for index, name in enumerate(dataflow.configure.datacoolie.transforms):
        place = f"{_FIELD}[{index}]"
        found[name] = _checked(_imported(name, prefixes, place), place)
    return list(found.values())


def _imported(name: str, allowed: tuple[str, ...], place: str) -> object:
    module, _, attribute = name.partition(":")
    if allowed and not any(_within(module, package) for package in allowed):
        raise TransformError(
            f"'{module}' is not among the packages that may be used",
            place=place,
            remedy="Add its package to allowed_function_prefixes.",
            code="not_allowed",
        )
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not _within(module, error.name):
            raise TransformError(
                f"'{module}' needs '{error.name}', which is not installed",
                place=place,
                remedy="Install it.",
                code="missing_plugin",
            ) from error
        problem = f"there is no module '{error.name}'"
    except AttributeError:
        problem = f"'{module}' has no '{attribute}'"
    raise TransformError(
        problem,
        place=place,
        remedy="Install its package, or correct the name: package.module:NAME.",
        code="missing_plugin",
    )


def _within(module: str, package: str) -> bool:
    """Say whether a module is a package or lies in it; ``shop`` holds ``shop.x``, not ``shops``.

    >>> _within("shop.x", "shop"), _within("shops", "shop")
    (True, False)
    """
    return f"{module}.".startswith(f"{package.removesuffix('.')}.")


def _checked(slot: object, place: str) -> Slot:
    if not isinstance(slot, Slot):
        raise TransformError(
            f"this is a {type(slot).__name__}, not a Slot",
            place=place,
            remedy="Name a Slot of datacoolie_core.transforms.slots.",
            code="bad_slot",
        )
    if slot.number not in PLUGIN_SLOTS:
        raise TransformError(
            f"the plug-in '{slot.name}' takes slot {slot.number}",
            place=place,
            remedy=f"Plug-ins may take slots {PLUGIN_SLOTS[0]} to {PLUGIN_SLOTS[-1]}.",
            code="bad_slot",
        )
    return slot
