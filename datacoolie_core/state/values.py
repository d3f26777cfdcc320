"""Watermark values as JSON, exact and typed (docs/reference/state.md, "Values")."""

from __future__ import annotations

import base64
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import WatermarkError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.plan.windows import Scalar, Watermark


def encode(value: Scalar | None) -> Any:
    """Return one value as JSON: plain where JSON is exact, else tagged with its type.

    Aware timestamps are stored in UTC, so equal instants are equal texts.

    >>> encode(datetime(2013, 1, 1, 5, tzinfo=UTC))
    {'__datetime__': '2013-01-01T05:00:00+00:00'}

    Raises:
        WatermarkError: For NaN and infinity, and for types that no watermark can have.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise WatermarkError(f"{value} can't be a watermark", code="bad_watermark")
        return value
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return {"__datetime__": moment.isoformat()}
    return _encode_tagged(value)


def _encode_tagged(value: Scalar) -> dict[str, str]:
    if isinstance(value, date):
        return {"__date__": value.isoformat()}
    if isinstance(value, time):
        return {"__time__": value.isoformat()}
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise WatermarkError(f"{value} can't be a watermark", code="bad_watermark")
        return {"__decimal__": str(value)}
    if isinstance(value, bytes):
        return {"__binary__": base64.b64encode(value).decode()}
    raise WatermarkError(
        f"a value of type {type(value).__name__} can't be a watermark",
        remedy="Use a number, a date, a timestamp or a text column.",
        code="bad_watermark",
    )


_DECODERS: dict[str, Any] = {
    "__datetime__": datetime.fromisoformat,
    "__date__": date.fromisoformat,
    "__time__": time.fromisoformat,
    "__decimal__": Decimal,
    "__binary__": partial(base64.b64decode, validate=True),
}


def decode(value: Any) -> Scalar | None:
    """Return the value that :func:`encode` wrote.

    >>> decode({"__date__": "2013-01-01"})
    datetime.date(2013, 1, 1)

    Raises:
        WatermarkError: For a tag or a text that no version of the format has.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise WatermarkError(f"{value} can't be a watermark", code="bad_watermark")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if not isinstance(value, dict):
        raise WatermarkError(f"{value!r} is no watermark value", code="bad_watermark")
    tagged: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
    if len(tagged) == 1:
        tag, text = next(iter(tagged.items()))
        if tag in _DECODERS and isinstance(text, str):
            try:
                found: Scalar = _DECODERS[tag](text)
            except (ValueError, InvalidOperation) as error:
                raise WatermarkError(
                    f"{text!r} is no {tag.strip('_')}", code="bad_watermark"
                ) from error
            if not isinstance(found, Decimal) or found.is_finite():
                return found
    raise WatermarkError(f"{tagged!r} is no watermark value", code="bad_watermark")


def encode_watermark(watermark: Watermark) -> dict[str, Any]:
    """Return a watermark as JSON, its columns sorted."""
    found: dict[str, Any] = {}
    for column in sorted(watermark):
        try:
            found[column] = encode(watermark[column])
        except WatermarkError as error:
            raise WatermarkError(
                error.message,
                place=f"column '{column}'",
                remedy=error.remedy
                or "Correct the value in the source, or leave such rows out "
                "by source.filter_expression.",
                code=error.code,
            ) from error
    return found


def decode_watermark(document: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the watermark that :func:`encode_watermark` wrote; null values are left out."""
    values = {column: decode(value) for column, value in document.items()}
    return {column: value for column, value in values.items() if value is not None}
