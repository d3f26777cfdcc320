"""The core: loads DataCoolie metadata and runs its dataflows. Never imports Dagster."""
