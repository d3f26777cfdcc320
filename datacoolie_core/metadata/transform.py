"""What happens to rows between source and destination, as metadata."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from datacoolie_core.metadata.base import Model, OpenModel
from datacoolie_core.metadata.coercions import (
    AsObject,
    Digits,
    Listed,
    Lowered,
    Name,
    Names,
    TrimmedName,
)

RuleColumns = Annotated[Names, Field(min_length=1)]
Scalar = str | int | float | bool


class SchemaHint(Model):
    """The type of one column."""

    column_name: TrimmedName
    data_type: TrimmedName
    format: str | None = None
    precision: Annotated[int | None, Digits] = None
    scale: Annotated[int | None, Digits] = None
    default_value: str | None = None
    ordinal_position: int = 0
    is_active: bool = True


class AdditionalColumn(Model):
    """A computed column."""

    column: TrimmedName
    expression: TrimmedName


class ValueRule(Model):
    """A rule that cleans text values before they are typed."""

    operation: Annotated[
        Literal["trim", "case", "regex_replace", "empty_to_null", "fill_null", "map"], Lowered
    ]
    columns: RuleColumns
    order: int = Field(default=100, ge=0)
    mode: Annotated[Literal["lower", "upper"] | None, Lowered] = None
    pattern: str | None = Field(default=None, max_length=4096)
    replacement: str = ""
    value: Scalar | None = None
    mapping: dict[str, str] | None = None
    on_unmapped: Annotated[Literal["keep", "null"], Lowered] = "keep"


class HashColumn(Model):
    """A stable hash over columns."""

    target_column: TrimmedName
    columns: RuleColumns
    algorithm: Annotated[Literal["sha256", "xxhash64"], Lowered] = "sha256"
    serialization: Literal["dc_hash_v1"] = "dc_hash_v1"


class MaskingRule(Model):
    """A rule that hides values."""

    method: Annotated[
        Literal["redact", "nullify", "partial", "numeric_bucket", "date_truncate"], Lowered
    ]
    columns: RuleColumns
    value: Scalar | None = None
    keep_start: int = Field(default=0, ge=0)
    keep_end: int = Field(default=0, ge=0)
    mask_char: str = "*"
    bucket_size: float | int | None = Field(default=None, gt=0)
    unit: Annotated[Literal["year", "month", "day", "hour"] | None, Lowered] = None


class TransformConfigure(OpenModel):
    """``configure`` of a transform."""

    missing_column_policy: Annotated[Literal["error", "ignore"], Lowered] = "error"
    convert_timestamp_ntz: bool = False
    timestamp_timezone: str | None = None
    deduplicate_by_rank: bool = False
    column_name_mode: Annotated[Literal["lower", "snake", "none"], Lowered] = "lower"


class Transform(Model):
    """What happens to the rows between source and destination."""

    deduplicate_columns: Names = ()
    latest_data_columns: Names = ()
    filter_expression: str | None = None
    additional_columns: Annotated[tuple[AdditionalColumn, ...], Listed] = ()
    schema_hints: Annotated[tuple[SchemaHint, ...], Listed] = ()
    select_columns: Names = ()
    drop_columns: Names = ()
    rename_columns: Annotated[dict[Name, Name], AsObject] = Field(default_factory=dict)
    value_rules: Annotated[tuple[ValueRule, ...], Listed] = ()
    hash_columns: Annotated[tuple[HashColumn, ...], Listed] = ()
    masking_rules: Annotated[tuple[MaskingRule, ...], Listed] = ()
    configure: Annotated[TransformConfigure, AsObject] = Field(default_factory=TransformConfigure)
