r"""What an archive holds: MementoMaps, looked up.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     file = Path(folder, "a.ukvs")
...     _ = file.write_text("com,* 10000+\norg,arxiv)/* 2500~/900\norg,arxiv)/pdf/* 0\n")
...     Map.open(file).lookup("https://arxiv.org/pdf/1234")
Answer(key='org,arxiv)/pdf/1234', held=False, matched='org,arxiv)/pdf/*', frequency='0')
"""

from unlost.holdings.map import Answer, Map

__all__ = ["Answer", "Map"]
