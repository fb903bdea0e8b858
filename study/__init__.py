"""The study: reproduces the findings of the papers on public data.

Each module is one chapter, run by `make study-NAME`, or with all others by `make study`. A chapter writes two files to
`study/results/`: `NAME.json` with all figures, and `NAME.md`, its section of docs/study.md, which is derived from those
figures alone. `study.page` joins the sections in the order of `CHAPTERS`.
"""

CHAPTERS = ("policies", "maps", "ageing", "ranking", "recoveries", "weeks")
"""Module names of the chapters, in the order of docs/study.md."""
