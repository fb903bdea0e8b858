"""The study: what the papers found, found again or not, on data that anybody can have.

Each module is one chapter, run by `make study-NAME` or with all others by `make study`. A chapter leaves two files in
`study/results/`: `NAME.json` with every figure, and `NAME.md`, its section of docs/study.md, written from those figures
alone. `study.page` puts the sections together in the order of `CHAPTERS`.
"""

CHAPTERS = ("policies", "maps", "ageing", "ranking", "recoveries", "weeks")
"""By the names of their modules, in the order in which docs/study.md has them."""
