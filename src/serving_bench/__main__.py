"""``python -m serving_bench``: the command line without its console script."""

from serving_bench.cli import main

main()
