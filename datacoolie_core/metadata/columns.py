"""The columns of a workbook's sheets, as the models have their fields."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel

from datacoolie_core.metadata.models import (
    Connection,
    ConnectionConfigure,
    Dataflow,
    SchemaHint,
    SchemaHintGroup,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

    from datacoolie_core.metadata.sections import Section

Kind = Literal["text", "integer", "flag", "list", "object", "any"]

CONFIGURE = "configure_"
"""How the columns begin that hold one key of a connection's ``configure``."""

_ENDS = ("source", "destination", "transform")


@dataclass(frozen=True)
class Column:
    """A column of a sheet.

    Attributes:
        header: Its name.
        path: The field of the entry that its cells hold.
        kind: What its cells hold; ``any`` is taken as it is.
    """

    header: str
    path: tuple[str, ...]
    kind: Kind

    @property
    def field(self) -> str:
        """The path as messages write it."""
        return ".".join(self.path)


@cache
def columns_of(section: Section) -> Mapping[str, Column]:
    """Return the columns that a sheet can have, by name, in the order of reading."""
    found = {
        "connections": _connections,
        "dataflows": _dataflows,
        "schema_hints": _schema_hints,
    }[section]
    return {column.header: column for column in found()}


def configure_column(key: str) -> Column:
    """Return the column of one key of a connection's ``configure``."""
    field = ConnectionConfigure.model_fields.get(key)
    return Column(f"{CONFIGURE}{key}", ("configure", key), kind_of(field) if field else "any")


def fields_of(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the keys of a mapping in the order in which they read best: extensions come last."""
    for name, field in model.model_fields.items():
        if name == "extensions":
            continue
        alias = field.validation_alias
        names = alias.choices if isinstance(alias, AliasChoices) else [name]
        for one in reversed(names):
            yield str(one), field
    if "extensions" in model.model_fields:
        yield "extensions", model.model_fields["extensions"]


def kind_of(field: FieldInfo) -> Kind:
    """Return what the cells of a field hold."""
    if isinstance(field.validation_alias, AliasChoices):
        return "text"  # a connection, by name
    members = members_of(field.annotation)
    if any(get_origin(one) is tuple for one in members):
        return "list"
    if any(_is_mapping(one) for one in members):
        return "object"
    return "flag" if bool in members else "integer" if int in members else "text"


def members_of(annotation: Any) -> list[Any]:
    """Return what a type allows, without what is wrapped around it and without None."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        return [one for part in get_args(annotation) for one in members_of(part)]
    return [] if annotation is type(None) else [annotation]


def _is_mapping(annotation: Any) -> bool:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return is_model or get_origin(annotation) is dict


def _columns(model: type[BaseModel], prefix: str = "", *path: str) -> Iterator[Column]:
    for name, field in fields_of(model):
        yield Column(f"{prefix}{name}", (*path, name), kind_of(field))


def _connections() -> Iterator[Column]:
    return _columns(Connection)


def _dataflows() -> Iterator[Column]:
    for column in _columns(Dataflow):
        name = column.header
        if name not in _ENDS:
            yield column
            continue
        (model,) = members_of(Dataflow.model_fields[name].annotation)
        yield from _columns(model, f"{name}_", name)
        if name == "transform":
            yield column


def _schema_hints() -> Iterator[Column]:
    for column in _columns(SchemaHintGroup):
        if column.header not in ("hints", "extensions"):
            yield column
    yield from _columns(SchemaHint, "", "hints")
