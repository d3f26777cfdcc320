"""Dagster assets, jobs and sensors from DataCoolie metadata."""

from __future__ import annotations

from datacoolie_dagster.component import DataCoolieComponent
from datacoolie_dagster.definitions import build_datacoolie_definitions
from datacoolie_dagster.resources import DataCoolieResource
from datacoolie_dagster.state_backed import StateBackedDataCoolieComponent
from datacoolie_dagster.translator import (
    DagsterDataCoolieTranslator,
    DataflowTranslatorData,
    SourceTranslatorData,
    UpstreamAsset,
)
from datacoolie_dagster.warm import warm_executor
from datacoolie_dagster.watermarks import AssetMetadataStateStore

__all__ = [
    "AssetMetadataStateStore",
    "DagsterDataCoolieTranslator",
    "DataCoolieComponent",
    "DataCoolieResource",
    "DataflowTranslatorData",
    "SourceTranslatorData",
    "StateBackedDataCoolieComponent",
    "UpstreamAsset",
    "build_datacoolie_definitions",
    "warm_executor",
]
