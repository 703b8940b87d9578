"""Composable GitHub Actions steps for LLM-serving benchmarks: render, launch, analyze."""

__version__ = "0.1.0"
