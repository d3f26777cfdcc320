"""What happens to rows between source and destination, as metadata."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from datacoolie_core.metadata.base import Model, OpenModel
from datacoolie_core.metadata.coercions import (
    AsObject,
    Digits,
    IsoText,
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
    """The column; case does not matter."""
    data_type: TrimmedName
    """The name of its type in the dialect of the connection."""
    format: str | None = None
    """How text is read: a pattern of Java (yyyy-MM-dd) or of strptime (%Y-%m-%d)."""
    precision: Annotated[int | None, Digits] = None
    """All digits of a decimal."""
    scale: Annotated[int | None, Digits] = None
    """Digits of a decimal after the point."""
    default_value: str | None = None
    """Stands in for null; it is read as the column's text would be."""
    ordinal_position: int = 0
    """Only for sorting."""
    is_active: bool = True
    """False leaves the hint out."""


class AdditionalColumn(Model):
    """A computed column."""

    column: TrimmedName
    """The new column."""
    expression: TrimmedName
    """SQL that computes it; it sees the columns before it."""


class ValueRule(Model):
    """A rule that cleans text values before they are typed."""

    operation: Annotated[
        Literal["trim", "case", "regex_replace", "empty_to_null", "fill_null", "map"], Lowered
    ]
    """What is done to the text."""
    columns: RuleColumns
    """The columns that it is done to."""
    order: int = Field(default=100, ge=0)
    """Rules run by order, then as listed."""
    mode: Annotated[Literal["lower", "upper"] | None, Lowered] = None
    """For case."""
    pattern: str | None = Field(default=None, max_length=4096)
    """For regex_replace: a subset that every engine reads alike."""
    replacement: str = ""
    """For regex_replace: plain text."""
    value: Annotated[Scalar | None, IsoText] = None
    """For fill_null: a value of the column's type; dates and decimals may be text."""
    mapping: dict[str, str] | None = None
    """For map: old value → new value."""
    on_unmapped: Annotated[Literal["keep", "null"], Lowered] = "keep"
    """For map: what happens to other values."""


class HashColumn(Model):
    """A stable hash over columns."""

    target_column: TrimmedName
    """The new column."""
    columns: RuleColumns
    """Its inputs: text, whole numbers, booleans or dates."""
    algorithm: Annotated[Literal["sha256", "xxhash64"], Lowered] = "sha256"
    """Which hash."""
    serialization: Literal["dc_hash_v1"] = "dc_hash_v1"
    """How the inputs become bytes."""


class MaskingRule(Model):
    """A rule that hides values."""

    method: Annotated[
        Literal["redact", "nullify", "partial", "numeric_bucket", "date_truncate"], Lowered
    ]
    """How values are hidden."""
    columns: RuleColumns
    """The columns to hide; each in one rule at most."""
    value: Annotated[Scalar | None, IsoText] = None
    """For redact: what stands there instead."""
    keep_start: int = Field(default=0, ge=0)
    """For partial: characters kept at the start."""
    keep_end: int = Field(default=0, ge=0)
    """For partial: characters kept at the end."""
    mask_char: str = "*"
    """For partial: the character that hides."""
    bucket_size: float | int | None = Field(default=None, gt=0, allow_inf_nan=False)
    """For numeric_bucket: how wide a bucket is."""
    unit: Annotated[Literal["year", "month", "day", "hour"] | None, Lowered] = None
    """For date_truncate: what is left."""


class TransformConfigure(OpenModel):
    """``configure`` of a transform."""

    missing_column_policy: Annotated[Literal["error", "ignore"], Lowered] = "error"
    """Whether a rule on a column that is not there fails."""
    convert_timestamp_ntz: bool = False
    """Whether timestamps without a zone become UTC."""
    timestamp_timezone: str | None = None
    """The zone that they are in."""
    deduplicate_by_rank: bool = False
    """Keep all rows that tie as newest."""
    column_name_mode: Annotated[Literal["lower", "snake", "none"], Lowered] = "lower"
    """How column names are cleaned."""


class Transform(Model):
    """What happens to the rows between source and destination."""

    deduplicate_columns: Names = ()
    """One row is kept for each value of these; merge_keys if not given."""
    latest_data_columns: Names = ()
    """The newest by these is kept; watermark_columns if not given."""
    filter_expression: str | None = None
    """SQL condition, after the additional columns."""
    additional_columns: Annotated[tuple[AdditionalColumn, ...], Listed] = ()
    """Computed columns."""
    schema_hints: Annotated[tuple[SchemaHint, ...], Listed] = ()
    """Types of columns; they win over shared hints as a whole."""
    select_columns: Names = ()
    """The columns to keep; or drop_columns."""
    drop_columns: Names = ()
    """The columns to leave out; or select_columns."""
    rename_columns: Annotated[dict[Name, Name], AsObject] = Field(default_factory=dict)
    """Old name → new name, as the last step."""
    value_rules: Annotated[tuple[ValueRule, ...], Listed] = ()
    """Cleaning of text, before it is typed."""
    hash_columns: Annotated[tuple[HashColumn, ...], Listed] = ()
    """Stable hashes."""
    masking_rules: Annotated[tuple[MaskingRule, ...], Listed] = ()
    """Values to hide."""
    configure: Annotated[TransformConfigure, AsObject] = Field(default_factory=TransformConfigure)
    """Options of the transform."""
