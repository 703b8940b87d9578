"""Rules over the files that configs refer to: clusters, scenarios, dataset lock."""

from __future__ import annotations

from collections.abc import Iterator

from serving_bench.config.models import ClustersYaml, DatasetsYaml, ScenariosYaml
from serving_bench.config.strictyaml import Document, shorten
from serving_bench.datasets.generators import GENERATORS
from serving_bench.errors import Problem


def check_clusters(document: Document, clusters: ClustersYaml) -> Iterator[Problem]:
    """A cluster with several nodes needs Slurm."""
    for name, cluster in clusters.clusters.items():
        if cluster.nodes > 1 and cluster.runtime != "slurm":
            message = f"{cluster.nodes} nodes need runtime slurm, found {cluster.runtime}"
            yield document.problem(("clusters", name, "nodes"), message, "SB-CLUSTER-NODES")


def check_scenarios(document: Document, scenarios: ScenariosYaml) -> Iterator[Problem]:
    """The load needs an end, and a warm-up exactly one."""
    for name, scenario in scenarios.scenarios.items():
        key = ("scenarios", name)
        load = scenario.load
        if load.conversations is None and load.requests is None and load.duration_s is None:
            yield document.problem((*key, "load"), "expected conversations, requests or duration-s", "SB-SCENARIO-LOAD")
        if scenario.warmup is not None:
            given = [value for value in dict(scenario.warmup).values() if value is not None]
            if len(given) != 1:
                message = f"expected one of conversations, requests, duration-s, found {len(given)}"
                yield document.problem((*key, "warmup"), message, "SB-SCENARIO-WARMUP")


def check_datasets(document: Document, datasets: DatasetsYaml) -> Iterator[Problem]:
    """A lock entry names one source, whole."""
    for name, dataset in datasets.datasets.items():
        key = ("datasets", name)
        sources = [source for source in ("generator", "path", "repo") if getattr(dataset, source) is not None]
        if len(sources) != 1:
            message = f"expected one of generator, path, repo, found {', '.join(sources) or 'none'}"
            yield document.problem(key, message, "SB-LOCK-SOURCE")
        if dataset.repo is not None and (dataset.revision is None or dataset.file is None):
            yield document.problem(key, "expected revision and file beside repo", "SB-LOCK-REVISION")
        if dataset.generator is not None and dataset.generator not in GENERATORS:
            message = f"unknown generator {shorten(dataset.generator)}, known: {', '.join(sorted(GENERATORS))}"
            yield document.problem((*key, "generator"), message, "SB-LOCK-GENERATOR")
        if dataset.rooms_file is not None and dataset.rooms_sha256 is None:
            yield document.problem((*key, "rooms-file"), "expected rooms-sha256 beside rooms-file", "SB-LOCK-ROOMS")
