"""Counts the questions that archives are asked."""

from collections import Counter

from unlost.archives.archive import Archive, Work
from unlost.archives.asking.question import Asks, Question, Reply


class Counting:
    """A courier that counts what it carries, by archive and kind of question."""

    def __init__(self, courier: Asks) -> None:
        self._courier = courier
        self.asked: Counter[tuple[str, Work]] = Counter()

    async def ask(self, archive: Archive, question: Question) -> Reply:
        """Return the answer, as the courier does."""
        self.asked[archive.id, question.work] += 1
        return await self._courier.ask(archive, question)
