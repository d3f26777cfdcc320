"""What all metadata models share."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from datacoolie_core.metadata.coercions import Anything
from datacoolie_core.redaction import HIDDEN, hidden, looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterator


class Model(BaseModel):
    """A frozen, strict mapping: unknown keys are errors, and null means *not given*.

    ``extensions`` is free for the user, in every mapping of the format.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    extensions: Anything = Field(default_factory=dict)
    """Free for you; nothing reads it."""

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield what ``repr`` shows: nothing that looks like a secret."""
        for name, value in super().__repr_args__():
            secret = name is not None and value and looks_secret(name)
            yield name, HIDDEN if secret else hidden(value)

    @model_validator(mode="before")
    @classmethod
    def _null_means_absent(cls, data: Any) -> Any:
        if isinstance(data, dict) and None in data.values():
            return _without_nulls(cls, data)  # pyright: ignore[reportUnknownArgumentType]
        return data  # pyright: ignore[reportUnknownVariableType]


class OpenModel(Model):
    """A frozen mapping that keeps keys it does not know, for ``configure``."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        strict=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )


@cache
def keys_of(model: type[BaseModel]) -> frozenset[str]:
    """Return the keys that a mapping of this model may have, aliases too."""
    keys = set(model.model_fields)
    for field in model.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            keys.update(name for name in field.validation_alias.choices if isinstance(name, str))
    return frozenset(keys)


def _without_nulls(model: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    # only declared keys: what an open mapping does not know is passed on untouched
    known = keys_of(model)
    return {key: value for key, value in data.items() if value is not None or key not in known}
