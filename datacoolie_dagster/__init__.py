"""Dagster assets, jobs and sensors from DataCoolie metadata."""
