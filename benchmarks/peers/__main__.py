"""All of `make bench`: python -m benchmarks.peers"""

from benchmarks.peers import compare, plots, scaling, startup

startup.main()
compare.main()
scaling.main()
plots.main()
